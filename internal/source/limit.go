package source

import (
	"fmt"
	"time"
)

// Why is the reason for which a source may not be asked.
type Why int

const (
	_         Why = iota // none: it may be asked
	Guarded              // we stopped: today's cap is reached
	Exhausted            // they stopped us: no credit or quota is left
	Paced                // they asked us to wait for a moment
	Denied               // they do not accept our credential

	whyEnd // keep last
)

func (w Why) String() string { return word(int(w), "", "guarded", "exhausted", "paced", "denied") }

// whyOf is the Why that a row names; zero where it names none.
func whyOf(text string) Why {
	for w := Guarded; w < whyEnd; w++ {
		if w.String() == text {
			return w
		}
	}
	return 0
}

// A LimitError says that a source may not be asked, and until when. Its text is for the operator: it names the source.
type LimitError struct {
	Source string
	Why    Why
	Until  time.Time     // market time
	Wait   time.Duration // until then, from when it was said
}

func (e *LimitError) Error() string {
	until := e.Until.UTC().Format("2006-01-02 15:04:05 UTC")
	switch e.Why {
	case Guarded:
		return fmt.Sprintf("source %s has reached our own guard for today; more from %s", e.Source, until)
	case Exhausted:
		return fmt.Sprintf("source %s refuses us: no credit or quota is left; asked again from %s", e.Source, until)
	case Paced:
		return fmt.Sprintf("source %s asks us to wait; asked again from %s", e.Source, until)
	case Denied:
		return fmt.Sprintf("source %s does not accept our credential; asked again from %s", e.Source, until)
	}
	return fmt.Sprintf("source %s may not be asked until %s", e.Source, until)
}
