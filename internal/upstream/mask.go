package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
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

// maskOf hides the values of a service's headers, their parts (the token after "Bearer", the value of a cookie), and its secret; each as it is,
// and as JSON and URLs write it.
func maskOf(s *catalog.Service) mask {
	var m mask
	add := func(text string) {
		quoted, _ := json.Marshal(text) // a string can always be encoded
		for _, form := range []string{text, strings.Trim(string(quoted), `"`), url.QueryEscape(text)} {
			if len(text) >= maskedLenMin && !slices.Contains(m.texts, form) {
				m.texts = append(m.texts, form)
			}
		}
	}
	for _, h := range s.Headers {
		add(h.Value.Reveal())
		for _, part := range strings.FieldsFunc(h.Value.Reveal(), func(r rune) bool { return strings.ContainsRune(" ,;=\"", r) }) {
			add(part)
		}
	}
	add(s.Secret.Value.Reveal())
	slices.SortFunc(m.texts, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return m
}

func (m mask) bytes(b []byte) []byte {
	for _, text := range m.texts {
		b = bytes.ReplaceAll(b, []byte(text), []byte(maskedText))
	}
	return b
}

// cut takes the beginning of a hidden text off the end of a text that goes on somewhere else.
func (m mask) cut(b []byte) []byte {
	for _, text := range m.texts {
		for n := min(len(text)-1, len(b)); n > 0; n-- {
			if bytes.HasSuffix(b, []byte(text[:n])) {
				b = b[:len(b)-n]
				break
			}
		}
	}
	return b
}

// err keeps an error as it is where it repeats nothing, and its text alone where it does.
func (m mask) err(err error) error {
	said := err.Error()
	if hidden := string(m.bytes([]byte(said))); hidden != said {
		return errors.New(hidden)
	}
	return err
}
