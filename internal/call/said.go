package call

const (
	// SnippetMax is how many bytes of text are kept of an answer that failed, HashedMax how many of its first bytes are hashed.
	SnippetMax = 1 << 10
	HashedMax  = 64 << 10
)

// Said is what came back of an answer that did not do. Snippet and ContentType come from the service: text in UTF-8 without control characters,
// without the secrets of its listing, and hostile all the same.
type Said struct {
	ContentType string
	Snippet     string // how the body begins, at most SnippetMax bytes; empty where that is no text
	SHA256      []byte // of the first HashedMax bytes of what was read; nil where nothing was
	Bytes       int64  // of the body, as far as it was read
	Cut         bool   // the body went on, or was to
}

// Binary says that there was a body that cannot be shown.
func (s Said) Binary() bool { return s.Bytes > 0 && s.Snippet == "" }
