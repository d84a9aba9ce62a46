package server

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"market/internal/catalog"
)

// A badge is a state in a word. Tone: good, wait or bad, which is shown beside the word and never instead of it.
type badge struct{ Word, Tone string }

// badgeOf says in a word whether a service is for sale. rest is how long it still rests after a failure; dead: it did not answer a moment ago.
func badgeOf(state catalog.State, rest time.Duration, broken, dead bool) badge {
	switch {
	case state == catalog.Listed && broken:
		return badge{"broken listing", "bad"}
	case state == catalog.Listed && rest > 0:
		return badge{"resting after a failure", "wait"}
	case state == catalog.Listed && dead:
		return badge{"does not answer", "bad"}
	case state == catalog.Listed:
		return badge{"for sale", "good"}
	}
	return badge{stateWord(state), "bad"}
}

func stateWord(state catalog.State) string {
	if state == catalog.Listed {
		return "for sale"
	}
	return strings.ReplaceAll(string(state), "_", " ")
}

// percent is a share in whole tenths of a percent, rounded down: what is not always is not shown as always.
func percent(share float64) string {
	tenths := math.Floor(share*1000 + 1e-9)
	return strconv.FormatFloat(tenths/10, 'f', -1, 64) + " %"
}

// span is a duration for people: whole milliseconds below a second, tenths of a second above, and whole minutes and hours where it is some.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d >= 2*time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	case d >= 2*time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d minutes", int(d.Minutes()))
	}
	return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', -1, 64) + " s"
}

// count writes a number with commas between thousands.
func count(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// plain takes out what is not shown, and what turns the direction of the text around it.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}
