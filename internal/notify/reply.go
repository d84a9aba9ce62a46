package notify

import (
	"regexp"
	"slices"
	"strings"

	gomail "github.com/wneessen/go-mail"
)

// What the library adds to what a server said; it keeps the reply itself to itself.
var addedByUs = []string{", affected recipient(s): ", ", affected message ID: "}

// anyAddress is what looks like a mail address, also in another spelling than ours.
var anyAddress = regexp.MustCompile(`[^\s<>"(),:;]+@[^\s<>"(),:;]+`)

// serversWords is a reply without what we ourselves put into it. From its words we conclude whether the relay limits us, and a stranger chooses the
// address of a letter: one such as daily-quota@example.com must not look like the relay's own word, whether the library adds it or the server repeats it.
func serversWords(mail *gomail.Msg, said *gomail.SendError) string {
	text := said.Error()
	for _, added := range addedByUs {
		text, _, _ = strings.Cut(text, added)
	}
	ours, _ := mail.GetRecipients() // without any there is nothing to cut
	if from, err := mail.GetSender(false); err == nil {
		ours = append(ours, from)
	}
	ours = append(ours, mail.GetMessageID())
	for i, address := range ours {
		address = strings.Trim(address, "<>")
		ours[i] = address
		text = without(text, regexp.QuoteMeta(address), "(address)")
	}
	text = anyAddress.ReplaceAllString(text, "(address)")
	var domains []string
	for _, address := range ours {
		domains = append(domains, address[strings.LastIndexByte(address, '@')+1:])
	}
	slices.SortFunc(domains, func(a, b string) int { return len(b) - len(a) }) // one may end like another
	for _, domain := range domains {
		if domain != "" {
			text = without(text, `\b`+regexp.QuoteMeta(domain)+`\b`, "(domain)")
		}
	}
	return text
}

// without replaces a pattern, whatever its case.
func without(text, pattern, by string) string {
	if pattern == "" {
		return text
	}
	return regexp.MustCompile("(?i)"+pattern).ReplaceAllLiteralString(text, by)
}
