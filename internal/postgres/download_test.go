package postgres

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// fakeServer is what a repository would serve: programs that know their version and no more.
func fakeServer() []entry {
	return []entry{
		{name: "./bin/", kind: tar.TypeDir},
		{name: "./bin/postgres", content: "#!/bin/sh\necho 'postgres (PostgreSQL) 16.9'\n"},
		{name: "./bin/initdb", content: "#!/bin/sh\nexit 0\n"},
		{name: "lib/libpq.so.5.16", content: "library"},
		{name: "lib/libpq.so.5", kind: tar.TypeSymlink, content: "libpq.so.5.16"},
	}
}

// repository serves an archive with the given checksum file, at the paths of the real one, and counts the requests for the archive.
func repository(t *testing.T, archive []byte, checksum string) (url string, downloads *atomic.Int32) {
	t.Helper()
	downloads = new(atomic.Int32)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /io/zonky/test/postgres/{name}/"+downloadVersion+"/{file}", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.PathValue("file"), r.PathValue("name")+"-"+downloadVersion+".jar") {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			_, _ = w.Write([]byte(checksum))
			return
		}
		downloads.Add(1)
		_, _ = w.Write(archive)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, downloads
}

func sum(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func testAccount(t *testing.T) *account {
	t.Helper()
	as, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	return as
}

func TestDownload_FetchesOnceAndRunsFromTheCache(t *testing.T) {
	t.Parallel()
	archive := jar(t, fakeServer()...)
	url, downloads := repository(t, archive, sum(archive)+"  archive.jar\n")
	d := Download{Repository: url + "/", Cache: filepath.Join(reachableDir(t), "cache")}
	for range 2 {
		b, err := d.binaries(t.Context(), testAccount(t))
		if err != nil || b.major != downloadMajor {
			t.Fatalf("binaries = %+v, %v; want major %d", b, err, downloadMajor)
		}
		if text, err := os.ReadFile(filepath.Join(b.dir, "..", "lib", "libpq.so.5")); err != nil || string(text) != "library" {
			t.Errorf("through the link: %q, %v", text, err)
		}
	}
	if n := downloads.Load(); n != 1 {
		t.Errorf("downloads = %d, want 1", n)
	}
}

func TestDownload_RefusesWhatItCannotTrust(t *testing.T) {
	t.Parallel()
	good := jar(t, fakeServer()...)
	escape := func(entries ...entry) []byte { return jar(t, append(fakeServer(), entries...)...) }
	tests := map[string]struct {
		archive  []byte
		checksum string // empty: the right one
		want     error
	}{
		"a wrong checksum":                    {good, sum([]byte("other")), ErrChecksum},
		"a checksum file that is a page":      {good, "<html>not found</html>", ErrChecksum},
		"a truncated archive":                 {good[:len(good)/2], sum(good), ErrChecksum},
		"truncated before it was summed":      {good[:len(good)/2], "", ErrArchive},
		"not an archive":                      {[]byte("hello"), "", ErrArchive},
		"a file above the folder":             {escape(entry{name: "../evil", content: "x"}), "", ErrArchive},
		"a file above it in the middle":       {escape(entry{name: "bin/../../evil", content: "x"}), "", ErrArchive},
		"an absolute file":                    {escape(entry{name: "/tmp/evil", content: "x"}), "", ErrArchive},
		"a link out of the folder":            {escape(entry{name: "bin/up", kind: tar.TypeSymlink, content: "../../up"}), "", ErrArchive},
		"an absolute link":                    {escape(entry{name: "bin/etc", kind: tar.TypeSymlink, content: "/etc"}), "", ErrArchive},
		"a hard link":                         {escape(entry{name: "bin/hard", kind: tar.TypeLink, content: "bin/initdb"}), "", ErrArchive},
		"a device":                            {escape(entry{name: "bin/null", kind: tar.TypeChar}), "", ErrArchive},
		"a second file under one name":        {escape(entry{name: "bin/initdb", content: "x"}), "", ErrArchive},
		"a file in place of a link's target":  {escape(entry{name: "lib/libpq.so.5", content: "x"}), "", ErrArchive},
		"no server in it":                     {jar(t, entry{name: "README", content: "x"}), "", ErrNoBinaries},
		"a folder in place of the executable": {jar(t, entry{name: "bin/postgres/", kind: tar.TypeDir}), "", ErrNoBinaries},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checksum := c.checksum
			if checksum == "" {
				checksum = sum(c.archive)
			}
			url, _ := repository(t, c.archive, checksum)
			dir := reachableDir(t)
			_, err := Download{Repository: url, Cache: filepath.Join(dir, "cache")}.binaries(t.Context(), testAccount(t))
			if !errors.Is(err, c.want) || !errors.Is(err, ErrNoBinaries) {
				t.Fatalf("err = %v, want %v and ErrNoBinaries", err, c.want)
			}
			if _, err := os.Lstat(filepath.Join(dir, "evil")); err == nil {
				t.Error("a file left the cache")
			}
			left, _ := filepath.Glob(filepath.Join(dir, "cache", "*", "*"))
			if c.want != ErrNoBinaries && len(left) != 0 {
				t.Errorf("left in the cache: %v", left)
			}
		})
	}
}

func TestDownload_SaysInOneLineWhatToInstallWhenTheRepositoryIsAway(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	away := gone.URL
	gone.Close()
	archive := jar(t, fakeServer()...)
	noChecksum := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(archive)
	}))
	t.Cleanup(noChecksum.Close)
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, checksumBytesMax+1))
	}))
	t.Cleanup(endless.Close)
	for name, url := range map[string]string{
		"unreachable":           away,
		"offers no checksum":    noChecksum.URL,
		"more than a checksum":  endless.URL,
		"an address that isn't": "http://[::1",
	} {
		_, err := Download{Repository: url, Cache: filepath.Join(reachableDir(t), "cache")}.binaries(t.Context(), testAccount(t))
		if !errors.Is(err, ErrNoBinaries) {
			t.Errorf("%s: err = %v, want ErrNoBinaries", name, err)
			continue
		}
		text := err.Error()
		if strings.Contains(text, "\n") || !strings.Contains(text, "apt-get install postgresql") || !strings.Contains(text, "MARKET_DATABASE_URL") {
			t.Errorf("%s: %q, want one line that says what to do", name, text)
		}
	}
}

func TestPlatformOf_SpellsAsTheRepositoryDoes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		os, arch string
		alpine   bool
		want     string
	}{
		"Debian on Intel":    {"linux", "amd64", false, "linux-amd64"},
		"Debian on ARM":      {"linux", "arm64", false, "linux-arm64v8"},
		"Alpine on Intel":    {"linux", "amd64", true, "linux-amd64-alpine"},
		"a Mac":              {"darwin", "arm64", false, "darwin-arm64v8"},
		"Windows is unknown": {"windows", "amd64", false, ""},
		"RISC-V is unknown":  {"linux", "riscv64", false, ""},
	}
	for name, c := range tests {
		got, err := platformOf(c.os, c.arch, c.alpine)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
