"""From an Analysis to what people read: words, a text report, files for other programs, one HTML page."""
