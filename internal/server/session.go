package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// sessionTime is how long a sign-in lasts.
const sessionTime = 8 * time.Hour

// sessionText has one spelling for each value.
var sessionText = base64.RawURLEncoding.Strict()

// A session is a sign-in of an admin with a browser. Nothing of it is kept here, so that each replica knows those that another one opened: its value
// says until when it is good, under a key that is made of the admin token. Another token ends all of them.
type session struct {
	id    [16]byte
	until time.Time
}

// Sizes of a value: the id, the end in Unix seconds, and the mark of both.
const (
	sessionSaid  = 16 + 8
	sessionBytes = sessionSaid + sha256.Size
)

// openSession starts a session.
func openSession(now time.Time) session {
	var opened session
	_, _ = rand.Read(opened.id[:]) // never fails: see crypto/rand
	opened.until = now.Add(sessionTime).Truncate(time.Second)
	return opened
}

// value is what the browser carries.
func (s session) value(token string) string {
	said := binary.BigEndian.AppendUint64(append(make([]byte, 0, sessionBytes), s.id[:]...), uint64(s.until.Unix()))
	return sessionText.EncodeToString(append(said, sessionMark(token, "session", said)...))
}

// formToken is what the forms of a session carry, so that what is posted comes from a page that this browser was shown.
func (s session) formToken(token string) string {
	return sessionText.EncodeToString(sessionMark(token, "form", s.id[:]))
}

// readSession returns the session of a value; false where the value is none of ours, is of another token, or has ended.
func readSession(value, token string, now time.Time) (session, bool) {
	raw, err := sessionText.DecodeString(value)
	if err != nil || len(raw) != sessionBytes || token == "" || !hmac.Equal(raw[sessionSaid:], sessionMark(token, "session", raw[:sessionSaid])) {
		return session{}, false
	}
	read := session{id: [16]byte(raw[:16]), until: time.Unix(int64(binary.BigEndian.Uint64(raw[16:sessionSaid])), 0)} //nolint:gosec // we wrote it
	return read, now.Before(read.until)
}

// sessionMark is for one use: what is marked as a form token is no session.
func sessionMark(token, use string, of []byte) []byte {
	mac := hmac.New(sha256.New, []byte("market admin\n"+token))
	_, _ = mac.Write([]byte(use + "\n")) // a hash takes everything
	_, _ = mac.Write(of)
	return mac.Sum(nil)
}
