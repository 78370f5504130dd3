"""Weight memory readers: the weight tile prefetcher and the constants loader."""
