package upstream

import (
	"bytes"
	"strconv"
	"strings"
)

// escapeLenMax is longer than any escape that is read here.
const escapeLenMax = 12

// A reading is a text with the escapes of one kind read, and where each byte of it stood: at has one more, for its end.
type reading struct {
	text []byte
	at   []int
}

// readings are what a text says to those who read it as it is, as JSON, as a part of a URL, as HTML, and as one of these in another. Encoders
// escape more than they have to, each in its own way, so comparing with what one of them writes would miss the others.
func readings(b []byte) []reading {
	plain := reading{text: b, at: make([]int, len(b)+1)}
	for i := range plain.at {
		plain.at[i] = i
	}
	all := []reading{plain}
	kinds := []struct {
		marks string
		step  func([]byte) (byte, int)
	}{{`\`, ofJSON}, {"%", ofURL}, {"%+", ofForm}, {"&", ofHTML}}
	add := func(from reading) {
		for _, k := range kinds {
			if bytes.ContainsAny(from.text, k.marks) {
				all = append(all, from.read(k.step))
			}
		}
	}
	add(plain)
	for _, once := range all[1:] {
		add(once)
	}
	return all
}

// marks begin an escape of any kind.
const marks = `\%&`

// escapesMax is how many escapes one byte of a text is made of, one in another: it is more than is read.
const escapesMax = 4

// ends are a text as it is, and without what may be the beginning of an escape at its end: of one that stands in another, several marks back. Marks that
// follow on each other are of one escape: JSON in JSON doubles them.
func ends(b []byte) [][]byte {
	all := [][]byte{b}
	for range escapesMax {
		at := bytes.LastIndexAny(b, marks)
		if at < 0 || len(b)-at >= escapeLenMax {
			break
		}
		b = bytes.TrimRight(b[:at], marks)
		all = append(all, b)
	}
	return all
}

// read reads with step, which returns the byte that an escape at the beginning stands for and how long the escape is; zero where there is none.
func (r reading) read(step func([]byte) (byte, int)) reading {
	out := reading{text: make([]byte, 0, len(r.text)), at: make([]int, 0, len(r.at))}
	for i := 0; i < len(r.text); {
		c, n := step(r.text[i:])
		if n == 0 {
			c, n = r.text[i], 1
		}
		out.text, out.at = append(out.text, c), append(out.at, r.at[i])
		i += n
	}
	out.at = append(out.at, r.at[len(r.text)])
	return out
}

// What is hidden is ASCII, so an escape of anything else is left as it stands.
func code(digits []byte, base int) (byte, bool) {
	n, err := strconv.ParseUint(string(digits), base, 7)
	return byte(n), err == nil
}

func ofJSON(b []byte) (byte, int) {
	if len(b) < 2 || b[0] != '\\' {
		return 0, 0
	}
	if strings.IndexByte(`/\"'`, b[1]) >= 0 {
		return b[1], 2
	}
	if len(b) >= 6 && b[1] == 'u' {
		if c, ok := code(b[2:6], 16); ok {
			return c, 6
		}
	}
	return 0, 0
}

func ofURL(b []byte) (byte, int) {
	if len(b) >= 3 && b[0] == '%' {
		if c, ok := code(b[1:3], 16); ok {
			return c, 3
		}
	}
	return 0, 0
}

func ofForm(b []byte) (byte, int) {
	if b[0] == '+' {
		return ' ', 1
	}
	return ofURL(b)
}

func ofHTML(b []byte) (byte, int) {
	if b[0] != '&' {
		return 0, 0
	}
	end := bytes.IndexByte(b[:min(len(b), escapeLenMax)], ';')
	if end < 2 {
		return 0, 0
	}
	name := string(b[1:end])
	if c, known := namedEntities[name]; known {
		return c, end + 1
	}
	digits, numeric := strings.CutPrefix(name, "#")
	base := 10
	if hex := strings.TrimLeft(digits, "xX"); hex != digits {
		digits, base = hex, 16
	}
	if c, ok := code([]byte(digits), base); numeric && ok {
		return c, end + 1
	}
	return 0, 0
}

var namedEntities = map[string]byte{
	"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "sol": '/', "plus": '+', "equals": '=', "colon": ':', "num": '#', "percnt": '%',
}
