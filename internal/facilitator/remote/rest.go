package remote

import "time"

// How long a facilitator that turned us away is left alone. What it asks for itself is bounded: nobody else closes our doors for an hour.
const (
	throttledRest = 5 * time.Second
	accountRest   = 30 * time.Second // a credential or an account that somebody has to mend
	restMax       = time.Minute
)

// restAfter is the pause that a fault asks for. A fault that one payment could provoke asks for none, or a caller could close the network.
func restAfter(f Fault, asked time.Duration) time.Duration {
	switch f {
	case Throttled:
		return min(restMax, max(asked, throttledRest))
	case Unpaid, Unauthorized:
		return min(restMax, max(asked, accountRest))
	case Unreached, Resting, Unsupported, TimedOut, Broken, Redirected, Turned, Failing, TooLarge, NotJSON, BadShape, NoTransaction,
		OtherNetwork, OtherPayer, Contradiction:
	}
	return 0
}

func (c *Client) rest(f Fault, asked time.Duration) {
	pause := restAfter(f, asked)
	if pause == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := c.opts.Now().Add(pause); until.After(c.state.restUntil) {
		c.state.restUntil, c.state.restFault = until, f
	}
}

func (c *Client) resting(call string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.opts.Now().Before(c.state.restUntil) {
		return nil
	}
	return c.trouble(call, Resting, 0, c.trouble(call, c.state.restFault, 0, nil))
}
