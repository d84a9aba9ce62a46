package letter

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Message is a letter as it is sent.
type Message struct {
	ID      string // the same each time
	Type    string
	At      time.Time       // when it happened
	Subject string          // of the mail, one line
	Text    string          // of the mail
	Data    json.RawMessage // of the webhook
}

// Data are the facts of a letter with where to go from them.
type Data struct {
	Facts
	StrikesURL string `json:"strikes_url"` // all strikes with their evidence
	AppealURL  string `json:"appeal_url"`  // where to answer
}

// DataOf is what a letter says, under a public URL without a trailing slash.
func DataOf(l Letter, publicURL string) Data {
	service := publicURL + "/api/v1/services/" + l.Facts.Service
	return Data{Facts: l.Facts, StrikesURL: service + "/strikes", AppealURL: service + "/appeals"}
}

// compose makes a letter ready to be sent. What comes of the same letter is the same each time.
func compose(l Letter, publicURL string) (Message, error) {
	data := DataOf(l, publicURL)
	raw, err := json.Marshal(data)
	if err != nil {
		return Message{}, fmt.Errorf("compose letter %s: %w", l.ID, err)
	}
	return Message{ID: l.ID.String(), Type: string(l.Kind), At: l.At, Subject: subjectOf(l), Text: textOf(l, data), Data: raw}, nil
}

// TimeText is a time as the API writes it: RFC 3339 in UTC with microseconds.
func TimeText(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}
