// Package call holds the words for one call: how it ended (Outcome), whose doing that was (Party), the typed class of it (Reason),
// where its traffic came from (Origin) and the states that a paid call goes through (State, Moves).
//
// It does no I/O and knows no policy: what an outcome does to a service is decided in strikes and cooldown, what it does to an HTTP
// answer in server. The values are the strings that the database and the API carry; the empty string is no value.
package call

import "github.com/google/uuid"

// ID names one call from acceptance to its final outcome. It is a UUIDv7, so ids sort by the time they were given out.
type ID = uuid.UUID

// NewID returns a fresh id. It panics when the system has no randomness, which no caller could mend.
func NewID() ID { return uuid.Must(uuid.NewV7()) }
