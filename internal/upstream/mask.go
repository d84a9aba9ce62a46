package upstream

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"market/internal/catalog"
)

const (
	// maskedLenMin is the shortest text that is hidden. What is shorter is no secret, and hiding it would tear up ordinary words.
	maskedLenMin = 8
	maskedText   = "[hidden]"
)

// A mask hides what we send to a service for itself alone, where the service says it back in a text that we keep, log or show. Services that
// refuse a request like to repeat its headers.
type mask struct{ texts []string } // the longest first, so that no part is hidden before its whole

// maskOf hides the values of a service's headers, their parts (the token after "Bearer", the pair in "Basic", the value of a cookie), and its
// secrets. It is made of a few cuts, so whoever needs one makes it.
func maskOf(s *catalog.Service) mask {
	var m mask
	add := func(text string) {
		if len(text) >= maskedLenMin && !slices.Contains(m.texts, text) {
			m.texts = append(m.texts, text)
		}
	}
	for _, h := range s.Headers {
		value := h.Value.Reveal()
		add(value)
		for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" ,;=\"", r) }) {
			add(part)
		}
		if scheme, encoded, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "Basic") {
			pair, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(encoded), "="))
			add(string(pair))
			_, password, _ := strings.Cut(string(pair), ":")
			add(password)
		}
	}
	for _, secret := range s.Secret.Values() {
		add(secret.Reveal())
	}
	slices.SortFunc(m.texts, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return m
}

// bytes hides every text, in whatever spelling of JSON, URLs or HTML it stands: see readings.
func (m mask) bytes(b []byte) []byte {
	var hidden []span
	for _, r := range readings(b) {
		for _, text := range m.texts {
			for from := 0; ; {
				at := bytes.Index(r.text[from:], []byte(text))
				if at < 0 {
					break
				}
				hidden = append(hidden, span{r.at[from+at], r.at[from+at+len(text)]})
				from += at + len(text)
			}
		}
	}
	slices.SortFunc(hidden, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out []byte
	end := 0
	for _, s := range hidden {
		if s.from >= end {
			out = append(append(out, b[end:s.from]...), maskedText...)
		}
		end = max(end, s.to)
	}
	return append(out, b[end:]...)
}

// A span is a part of a text.
type span struct{ from, to int }

// cut takes the beginning of a hidden text off the end of a text that goes on somewhere else, where the end may be in the middle of an escape. It does so
// once: a text ends in one place, and what stands before the beginning of a secret that broke off there is whole.
func (m mask) cut(b []byte) []byte {
	keep := len(b)
	for _, end := range ends(b) {
		for _, r := range readings(end) {
			for _, text := range m.texts {
				for n := min(len(text)-1, len(r.text)); n > 0; n-- {
					if bytes.HasSuffix(r.text, []byte(text[:n])) {
						keep = min(keep, r.at[len(r.text)-n])
						break
					}
				}
			}
		}
	}
	return b[:keep]
}

// err keeps an error as it is where it repeats nothing, and its text alone where it does.
func (m mask) err(err error) error {
	said := err.Error()
	if hidden := string(m.bytes([]byte(said))); hidden != said {
		return errors.New(hidden)
	}
	return err
}
