package main

import (
	"bytes"
	stdlog "log"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestLibraryLog_KeepsTheFactAndNotTheBytesOfAService(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := stdlog.New(libraryLog{zerolog.New(&out)}, "", 0)
	log.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", "HTTP/1.1 200 OK secretive", nil)
	log.Printf("http: Accept error: %v", "too many open files")
	if got := out.String(); strings.Contains(got, "secretive") || !strings.Contains(got, "Unsolicited response received") || !strings.Contains(got, "too many open files") {
		t.Errorf("log = %s", got)
	}
}
