"""What a test of code that uses this package needs: fakes to call and contracts to pass."""
