"""Systems whose memory can be imported: each is a `Format` of a module here."""
