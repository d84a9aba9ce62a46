package hostiletest

import (
	"fmt"
	"strings"

	"market/internal/app/apptest"
)

// secretRows are services that give away what only they and we should know. That they have it to give away is a part of each row: it is
// repeated from the request.
func secretRows() []row {
	repeats := func(name, text string, w want) row {
		return row{name: name, headers: map[string]any{"X-Api-Key": key}, want: w, plan: working(func(t *talk) {
			body := strings.NewReplacer("{key}", t.asking.Header.Get("X-Api-Key"), "{secret}", t.asking.Header.Get("Market-Secret")).Replace(text)
			head, body, _ := strings.Cut(body, "\n")
			answers(head, body)(t)
		})}
	}
	long := strings.Repeat("e", 4080)
	return []row{
		repeats("it repeats the key of its listing when it turns a request down (B98)", "400 Bad Request\n"+`{"key":"{key}"}`, turnsDown(400).telling(`{"key":"[hidden]"}`)),
		repeats("it repeats the key of its listing in words", "401 Unauthorized\nwrong key {key}", wantsLogin),
		repeats("it repeats the market's secret", "400 Bad Request\nwho is {secret}?", turnsDown(400).telling(`"who is [hidden]?"`)),
		repeats("it repeats the key where its words are cut", "400 Bad Request\n"+long+"{key}"+long, turnsDown(400)),
		repeats("it repeats the key in its status line", "500 {key}\n{key}", failsInside),
		repeats("it redirects to a place with the key in it (B100)", "302 Found {key}\n{key}", redirects),
		repeats("it serves the key, bit for bit", "200 OK\n{key}", serves(key)),
		{name: "it repeats the key in packed words", headers: map[string]any{"X-Api-Key": key}, want: turnsDown(400).telling("null"), plan: working(func(t *talk) {
			answers("400 Bad Request", apptest.Gzip(t.asking.Header.Get("X-Api-Key")), "Content-Encoding: gzip")(t)
		})},
		{name: "it repeats the key in the answer to its probe", headers: map[string]any{"X-Api-Key": key}, asked: none, want: notLive, plan: plan{work: good, probe: func(t *talk) {
			t.say(answer(fmt.Sprintf("500 %s", t.asking.Header.Get("X-Api-Key")), t.asking.Header.Get("X-Api-Key")))
		}}},
	}
}
