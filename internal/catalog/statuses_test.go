package catalog

import "testing"

func TestParseStatuses_AcceptsRangesAndNothingElse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		expression string
		good       bool
	}{
		"one status":               {"200", true},
		"a range":                  {"200-399", true},
		"a range and a status":     {"200-399,401", true},
		"empty":                    {"", false},
		"a space":                  {"200, 401", false},
		"an empty part":            {"200,", false},
		"a range the wrong way":    {"399-200", false},
		"an open range":            {"200-", false},
		"a class":                  {"2xx", false},
		"an informational status":  {"101", false},
		"a status past 599":        {"600", false},
		"a sign":                   {"-200", false},
		"more ranges than allowed": {"200,201,202,203,204,205,206,207,208,209,210,211,212,213,214,215,216", false},
	}
	for name, tt := range tests {
		set, err := ParseStatuses(tt.expression)
		if (err == nil) != tt.good {
			t.Errorf("%s: error = %v, want good = %v", name, err, tt.good)
		}
		if err == nil && set.String() != tt.expression {
			t.Errorf("%s: String() = %q, want %q", name, set, tt.expression)
		}
	}
}

func TestStatuses_Has_IncludesBothEnds(t *testing.T) {
	t.Parallel()
	set, err := ParseStatuses("200-399,401")
	if err != nil {
		t.Fatal(err)
	}
	for status, want := range map[int]bool{199: false, 200: true, 201: true, 399: true, 400: false, 401: true, 402: false, 0: false} {
		if got := set.Has(status); got != want {
			t.Errorf("Has(%d) = %v, want %v", status, got, want)
		}
	}
}
