"""Reports as one tree of blocks, shown as HTML, Markdown or plain text."""
