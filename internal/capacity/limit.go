package capacity

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Rate is how many calls may begin, in tenths of a call a second. Zero: any number.
type Rate int

// Bounds of what may be declared.
const (
	RateMin   Rate = 1       // one call in ten seconds
	RateMax   Rate = 100_000 // ten thousand a second
	PlacesMax      = 10_000
)

// A Limit is what a provider declared of a service. The zero value is no limit.
type Limit struct {
	Rate   Rate
	Places int // calls at once; zero: any number
}

// ErrRate says what a rate has to look like.
var ErrRate = errors.New("must be a number from 0.1 to 10000 with at most one decimal place")

// The form bounds the size before anything is computed.
var rateForm = regexp.MustCompile(`^[0-9]{1,5}(\.[0-9])?$`)

// ParseRate reads calls a second.
func ParseRate(text string) (Rate, error) {
	if !rateForm.MatchString(text) {
		return 0, ErrRate
	}
	whole, tenth, _ := strings.Cut(text, ".")
	if tenth == "" {
		tenth = "0"
	}
	n, err := strconv.Atoi(whole + tenth)
	if r := Rate(n); err == nil && r >= RateMin && r <= RateMax {
		return r, nil
	}
	return 0, ErrRate
}

// String is the rate in calls a second, as ParseRate reads it.
func (r Rate) String() string {
	text := strconv.Itoa(int(r) / 10)
	if tenth := int(r) % 10; tenth != 0 {
		text += "." + strconv.Itoa(tenth)
	}
	return text
}

// pace is the time from one call to the next on each of so many replicas, rounded up: together they never let in more than the rate.
func (r Rate) pace(replicas int) time.Duration {
	if r == 0 {
		return 0
	}
	whole := 10 * time.Second * time.Duration(replicas)
	return (whole + time.Duration(r) - 1) / time.Duration(r)
}
