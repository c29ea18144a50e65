"""What every room stands on: stages and runs, tables, manifests, engines, plugins and errors."""
