package hostiletest

import (
	"strings"
	"time"
)

// probeRows are services that are hostile from the start: nobody is asked to pay them.
func probeRows() []row {
	at := func(name string, probe func(*talk)) row {
		return row{name: name, plan: plan{work: good, probe: probe}, asked: none, want: notLive}
	}
	return []row{
		at("its probe fails", answers("500 Internal Server Error", "evil")),
		at("its probe redirects to the metadata address (B100)", answers("302 Found", "", "Location: http://169.254.169.254/latest/")),
		at("its probe asks for a payment (B109)", answers("402 Payment Required", "evil", "PAYMENT-REQUIRED: evil")),
		at("its probe hangs up", func(*talk) {}),
		at("its probe is garbage", says("evil\r\n\r\n")),
		at("its probe has headers without end", func(t *talk) { t.say("HTTP/1.1 200 OK\r\n"); t.pour(strings.Repeat("X-Evil: e\r\n", 1000)) }),
		at("its probe never answers", func(t *talk) { t.wait() }),
		{name: "its probe has a body without end", plan: plan{work: good, probe: func(t *talk) { t.say("HTTP/1.1 200 OK\r\n\r\n"); t.pour(strings.Repeat("evil", 1<<14)) }}, want: serves(done)},
		{name: "its probe sets a cookie and learns nothing by it", plan: plan{work: func(t *talk) {
			if t.asking.Header.Get("Cookie") != "" {
				t.say(answer("500 Internal Server Error", "it came back"))
				return
			}
			good(t)
		}, probe: answers("200 OK", "ok", "Set-Cookie: evil=1; Path=/", "Connection: close")}, want: serves(done)},
		{name: "its probe takes a second", plan: plan{work: good, probe: func(t *talk) { t.pause(time.Second); t.say(answer("200 OK", "ok", "Connection: close")) }}, want: serves(done)},
	}
}
