package postgres

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The version that is downloaded where a machine has none, and where from: the Maven repository that github.com/fergusstrange/embedded-postgres
// takes its binaries from. That library looks at the checksum only where the repository offers one and unpacks without limits, so the
// fetch is our own.
const (
	downloadVersion    = "16.9.0"
	downloadMajor      = 16
	downloadRepository = "https://repo1.maven.org/maven2"
)

// Limits of a download. The archives are about 10 MB packed and 60 MB unpacked.
const (
	archiveBytesMax  = 128 << 20
	checksumBytesMax = 1024
	downloadTimeout  = 5 * time.Minute
)

// ErrChecksum is an archive that is not what its repository says it is. It is never unpacked.
var ErrChecksum = errors.New("checksum of the downloaded binaries does not match")

// Download says from where the binaries of a server come, and where they are kept.
type Download struct {
	Repository string // base URL of a Maven repository; empty: Maven Central
	Cache      string // folder; empty: the user's cache folder, or a system one for root
}

// binaries returns the downloaded server, fetched and unpacked first if it is not in the cache. An error is ErrNoBinaries.
func (d Download) binaries(ctx context.Context, as *account) (binaries, error) {
	b, err := d.fetched(ctx, as)
	if err != nil {
		return binaries{}, noBinaries(err)
	}
	return b, nil
}

// noBinaries keeps the cause to its first line: what is to be done must not be lost below it.
func noBinaries(cause error) error {
	return &noBinariesError{cause}
}

type noBinariesError struct{ cause error }

func (e *noBinariesError) Error() string {
	why, _, _ := strings.Cut(e.cause.Error(), "\n")
	return fmt.Sprintf("%v on this machine, and the download failed (%s): run `apt-get install postgresql`, or set MARKET_DATABASE_URL", ErrNoBinaries, why)
}

func (e *noBinariesError) Unwrap() []error { return []error{ErrNoBinaries, e.cause} }

func (d Download) fetched(ctx context.Context, as *account) (binaries, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	platform, err := platformOf(runtime.GOOS, runtime.GOARCH, isAlpine())
	if err != nil {
		return binaries{}, err
	}
	cache, err := d.cacheDir()
	if err != nil {
		return binaries{}, err
	}
	home := filepath.Join(cache, "postgres-"+downloadVersion+"-"+platform)
	if err := as.canReach(home); err != nil {
		return binaries{}, err
	}
	if _, err := os.Stat(home); errors.Is(err, os.ErrNotExist) {
		if err := d.fetchTo(ctx, platform, home); err != nil {
			return binaries{}, err
		}
	}
	return inspectBinaries(ctx, as, filepath.Join(home, "bin"))
}

// fetchTo downloads, checks and unpacks. The unpacked folder gets its name when it is whole.
func (d Download) fetchTo(ctx context.Context, platform, home string) error {
	repository := strings.TrimSuffix(d.Repository, "/")
	if repository == "" {
		repository = downloadRepository
	}
	name := "embedded-postgres-binaries-" + platform
	archive := fmt.Sprintf("%s/io/zonky/test/postgres/%s/%s/%s-%s.jar", repository, name, downloadVersion, name, downloadVersion)
	want, err := get(ctx, archive+".sha256", checksumBytesMax)
	if err != nil {
		return err
	}
	jar, err := get(ctx, archive, archiveBytesMax)
	if err != nil {
		return err
	}
	if err := checkSum(jar, string(want)); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(home), "unpacking-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := unpackJar(jar, temp); err != nil {
		return fmt.Errorf("unpack %s: %w", archive, err)
	}
	if err := os.Chmod(temp, 0o755); err != nil { //nolint:gosec // public binaries, run by another account
		return err
	}
	err = os.Rename(temp, home)
	if _, there := os.Stat(filepath.Join(home, "bin")); err != nil && there == nil {
		return nil // another program was faster
	}
	return err
}

// checkSum compares with a checksum file: 64 hex digits, perhaps followed by a file name.
func checkSum(content []byte, file string) error {
	word, _, _ := strings.Cut(strings.TrimSpace(file), " ")
	want, err := hex.DecodeString(word)
	if err != nil || len(want) != sha256.Size {
		return fmt.Errorf("%w: the repository's checksum file is not one", ErrChecksum)
	}
	if got := sha256.Sum256(content); subtle.ConstantTimeCompare(got[:], want) != 1 {
		return fmt.Errorf("%w: got %x, want %x", ErrChecksum, got, want)
	}
	return nil
}

func get(ctx context.Context, url string, bytesMax int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, bytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", url, err)
	}
	if int64(len(body)) > bytesMax {
		return nil, fmt.Errorf("GET %s: more than %d bytes", url, bytesMax)
	}
	return body, nil
}

// platformOf spells a platform as the repository does.
func platformOf(os, arch string, alpine bool) (string, error) {
	names := map[string]string{"amd64": "amd64", "arm64": "arm64v8"}
	name, ok := names[arch]
	switch {
	case !ok || (os != "linux" && os != "darwin"):
		return "", fmt.Errorf("there are no binaries for %s/%s", os, arch)
	case os == "linux" && alpine:
		return "linux-" + name + "-alpine", nil
	}
	return os + "-" + name, nil
}

// isAlpine: its C library is another one.
func isAlpine() bool {
	_, err := os.Stat("/etc/alpine-release")
	return err == nil
}

// cacheDir makes the cache folder. Root's own cache is closed to the account that runs the server, so root uses the system's.
func (d Download) cacheDir() (string, error) {
	dir := d.Cache
	if dir == "" && os.Geteuid() == 0 {
		dir = "/var/cache/market"
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no cache folder: %w", err)
		}
		dir = filepath.Join(user, "market")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // public binaries, run by another account
		return "", err
	}
	return filepath.Abs(dir)
}
