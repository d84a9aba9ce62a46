package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// statusRangesMax bounds an expression; nobody needs more, and each probe walks them.
const statusRangesMax = 16

// Statuses is a set of HTTP statuses written as ranges: "200-399,401". The zero value holds none.
type Statuses struct{ ranges []statusRange }

type statusRange struct{ low, high int }

var statusForm = regexp.MustCompile(`^([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?$`)

// ParseStatuses reads comma-separated statuses and ranges, both ends included, 200 to 599. Spaces are not accepted.
func ParseStatuses(expression string) (Statuses, error) {
	if expression == "" {
		return Statuses{}, errors.New("names no status")
	}
	parts := strings.Split(expression, ",")
	if len(parts) > statusRangesMax {
		return Statuses{}, fmt.Errorf("has more than %d ranges", statusRangesMax)
	}
	var set Statuses
	for _, part := range parts {
		m := statusForm.FindStringSubmatch(part)
		if m == nil {
			return Statuses{}, errors.New("must be statuses or ranges of them, such as \"200-399,401\"")
		}
		low, _ := strconv.Atoi(m[1])
		high := low
		if m[2] != "" {
			high, _ = strconv.Atoi(m[2])
		}
		if low < 200 {
			return Statuses{}, errors.New("must not name an informational status")
		}
		if high < low {
			return Statuses{}, fmt.Errorf("range %s ends before it starts", part)
		}
		set.ranges = append(set.ranges, statusRange{low, high})
	}
	return set, nil
}

// Has says whether the set holds a status.
func (s Statuses) Has(status int) bool {
	for _, r := range s.ranges {
		if r.low <= status && status <= r.high {
			return true
		}
	}
	return false
}

// String returns the expression that ParseStatuses reads.
func (s Statuses) String() string {
	parts := make([]string, 0, len(s.ranges))
	for _, r := range s.ranges {
		part := strconv.Itoa(r.low)
		if r.high != r.low {
			part += "-" + strconv.Itoa(r.high)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}
