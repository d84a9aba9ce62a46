package catalog

import (
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// shortRegexp compiles the patterns of a schema. Go's matcher takes time in proportion to pattern and text; both are bounded.
func shortRegexp(pattern string) (jsonschema.Regexp, error) {
	if len(pattern) > patternLenMax {
		return nil, fmt.Errorf("patterns must not be longer than %d characters", patternLenMax)
	}
	r, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return r, nil
}
