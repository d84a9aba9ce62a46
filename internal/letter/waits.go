package letter

import "time"

// waits are those after the attempts that failed, one after the other: eight attempts over 23 h 36 min.
var waits = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 6 * time.Hour}

// attemptsMax is how many attempts there are.
var attemptsMax = 1 + len(waits)

// waitAfter returns how long to wait after so many failed attempts, and whether there is another one at all.
func waitAfter(failed int) (wait time.Duration, more bool) {
	if failed < 1 || failed > len(waits) {
		return 0, false
	}
	return waits[failed-1], true
}
