"""Planning of rewrites: which files are worth writing anew, and which of them together. Pure: Arrow in, Arrow out."""
