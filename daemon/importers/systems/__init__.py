"""One module for each system whose memory can be imported: `detect(look)` and `read(look)`."""
