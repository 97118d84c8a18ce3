"""Generated passwords for Secrets that request one; a password is never changed."""
