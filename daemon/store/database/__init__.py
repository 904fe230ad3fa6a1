"""The SQLite databases of one agent: connections, tables, transactions, and rows of any kind."""
