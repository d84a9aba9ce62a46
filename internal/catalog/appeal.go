package catalog

import (
	"github.com/google/uuid"

	"market/internal/refusal"
)

// AppealLenMax is how many characters one appeal has at most.
const AppealLenMax = 2000

// An AppealDraft is what a provider says to a strike, or, where Strike is zero, to its service being off the shelf.
type AppealDraft struct {
	Strike uuid.UUID
	Text   string
}

// ParseAppeal reads the body of an appeal: {"strike": "…", "text": "…"}.
func ParseAppeal(body []byte) (AppealDraft, error) {
	var problems []refusal.Field
	f, err := openForm(body, &problems)
	if err != nil {
		return AppealDraft{}, err
	}
	d := AppealDraft{Text: f.text("text", 1, AppealLenMax)}
	if f.given("strike") {
		text := f.text("strike", 1, 100)
		if d.Strike, err = uuid.Parse(text); text != "" && err != nil {
			f.wrong("strike", "must be the id of a strike")
		}
	}
	f.end()
	return d, refused(problems)
}
