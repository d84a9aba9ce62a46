package letter

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Message is a letter as it is sent.
type Message struct {
	ID      string // the same each time
	Subject string // of the mail, one line
	Text    string // of the mail
	JSON    []byte // body of the webhook
}

// A payload is what a webhook gets. The names are a contract.
type payload struct {
	Type      Kind   `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      Data   `json:"data"`
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
	body, err := json.Marshal(payload{Type: l.Kind, Timestamp: TimeText(l.At), Data: data})
	if err != nil {
		return Message{}, fmt.Errorf("compose letter %s: %w", l.ID, err)
	}
	return Message{ID: l.ID.String(), Subject: subjectOf(l), Text: textOf(l, data), JSON: body}, nil
}

// TimeText is a time as the API writes it: RFC 3339 in UTC with microseconds.
func TimeText(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}
