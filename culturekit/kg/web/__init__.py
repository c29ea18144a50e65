"""Asking servers elsewhere: only at public addresses, or where the user names this machine, and politely."""
