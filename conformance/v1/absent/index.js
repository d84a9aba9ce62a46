throw new Error("this package is not installed: see the overrides in conformance/v1/package.json");
