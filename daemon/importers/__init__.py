"""Other systems' folders, files and tables, and damaged databases, as rows of a memory."""
