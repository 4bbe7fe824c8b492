"""What op families share: dims and dtypes, checks, factories' options, half precision, numeric building blocks."""
