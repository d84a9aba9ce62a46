package catalog

import (
	"bytes"
	"time"

	"market/internal/refusal"
)

// ParseSecretChange reads the body of a request for a new secret: nothing, or {"after_seconds": 0}. It returns how long the new one waits.
func ParseSecretChange(body []byte) (time.Duration, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return SecretAfterDefault, nil
	}
	var problems []refusal.Field
	f, err := openForm(body, &problems)
	if err != nil {
		return 0, err
	}
	after := f.whole("after_seconds", int(SecretAfterDefault/time.Second), 0, int(SecretAfterMax/time.Second))
	f.end()
	return time.Duration(after) * time.Second, refused(problems)
}
