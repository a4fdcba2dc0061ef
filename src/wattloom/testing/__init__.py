"""For those who extend Wattloom: conformance kits and builders, public like the rest."""
