// Command build makes a kubelet with waybill inside, of a released version of Kubernetes:
//
//	go run ./cmd/build v1.37.0 /usr/local/bin/kubelet
//
// The sources come from the Go module proxy; the change is package change's. Needed are Go, a C compiler,
// and pkg-config that finds waybill-c.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	goversion "go/version"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"waybill.dev/go/kubelet/internal/change"
)

// What to pass to the compiler for a minor version of Kubernetes, so that the adapters have its
// interfaces.
var tagsOf = map[string]string{
	"1.35": "waybill_kubelet_1_35",
	"1.36": "",
	"1.37": "",
	"1.38": "",
}

// goNeeded is what a go.mod, or Go itself, says of the Go that a module needs.
var goNeeded = regexp.MustCompile(`(?m)(?:requires go (?:>|\\u003e)= |^go )([0-9.]+)`)

func main() {
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), `build VERSION OUT: makes a kubelet with waybill inside
build -check VERSION: only checks that the change compiles

VERSION is a release of Kubernetes: v1.37.0, or 1.37 for its newest patch. Known: %s.
OUT is the kubelet that is made. Nothing else is left, but what Go caches.
`, known())
		flag.PrintDefaults()
	}
	check := flag.Bool("check", false, "only check that the changed sources compile, which takes seconds; no OUT")
	keep := flag.String("keep", "", "a new directory to keep what the kubelet is built from, for a look at the change")
	flag.Parse()
	if flag.NArg() != 2 && !(*check && flag.NArg() == 1) {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := build(ctx, flag.Arg(0), flag.Arg(1), *keep, *check)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func known() string { return strings.Join(slices.Sorted(maps.Keys(tagsOf)), ", ") }

func build(ctx context.Context, version, out, keep string, check bool) (err error) {
	if !check { // before minutes of building
		if out, err = filepath.Abs(out); err != nil {
			return err
		}
		if info, err := os.Stat(out); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is there and is not a file; name the kubelet to make", out)
		}
		if info, err := os.Stat(filepath.Dir(out)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is to be made in %s, which is no directory", out, filepath.Dir(out))
		}
	}
	var scratch string
	if keep != "" {
		if scratch, err = filepath.Abs(keep); err == nil {
			err = os.Mkdir(scratch, 0o755)
		}
	} else if scratch, err = os.MkdirTemp("", "waybill-kubelet-"); err == nil {
		defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	}
	if err != nil {
		return err
	}
	b := &builder{ctx: ctx, scratch: scratch, module: filepath.Join(scratch, "kubernetes"), overlay: map[string]string{}}
	if err := b.checkLibrary(); err != nil {
		return err
	}
	if err := b.fetch(version); err != nil {
		return err
	}
	if err := errors.Join(b.overlaySources(), b.overlayAdapters()); err != nil {
		return err
	}
	if err := b.writeModule(); err != nil {
		return err
	}
	if check {
		return b.check()
	}
	fmt.Fprintf(os.Stderr, "building the kubelet %s with waybill inside\n", b.kubernetes.Version)
	// Beside what it replaces, so that there is never half a kubelet.
	made, err := os.MkdirTemp(filepath.Dir(out), ".waybill-kubelet-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	if err := b.compile(filepath.Join(made, "kubelet")); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(made, "kubelet"), 0o755); err != nil {
		return err
	}
	return os.Rename(filepath.Join(made, "kubelet"), out)
}

type builder struct {
	ctx     context.Context
	scratch string
	module  string // the kubelet's module; but for go.mod and go.sum its files are in the overlay only
	overlay map[string]string
	cflags  string // for C, with what the C library is

	kubernetes moduleJSON
	minor      string // 1.37
	adapters   string // the folder of waybill.dev/go/kubelet
	binding    string // that of waybill.dev/go
}

// moduleJSON is what Go says of a module, and what its file Info says.
type moduleJSON struct {
	Version, Dir, Info, GoMod string
	Time                      time.Time
	Origin                    struct{ Hash string }
}

// run returns what a command prints. It ignores the caller's settings for other builds.
func (b *builder) run(directory string, command ...string) ([]byte, error) {
	c := exec.CommandContext(b.ctx, command[0], command[1:]...)
	flags := "-buildvcs=false" // were it empty, `go env -w` would count
	for _, flag := range strings.Fields(os.Getenv("GOFLAGS")) {
		if name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "="); name == "modcacherw" || name == "p" {
			flags += " " + flag
		}
	}
	c.Dir = directory
	c.Env = append(os.Environ(), "GOFLAGS="+flags, "GO111MODULE=on", "CGO_ENABLED=1", "PWD="+directory)
	if b.adapters != "" { // Where these are, a workspace may say; what is built, only the kubelet's go.mod.
		c.Env = append(c.Env, "GOWORK=off")
	}
	if b.cflags != "" {
		c.Env = append(c.Env, "CGO_CFLAGS="+b.cflags)
	}
	var errors bytes.Buffer
	c.Stderr = &errors
	out, err := c.Output()
	if b.ctx.Err() != nil {
		return nil, context.Cause(b.ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", strings.Join(command[:min(len(command), 3)], " "), err, errors.Bytes(), out)
	}
	return out, nil
}

func (b *builder) checkLibrary() error {
	answer, err := b.run(b.scratch, "pkg-config", "--cflags", "--libs", "waybill-c")
	if err != nil {
		return fmt.Errorf("the C library is not found; set PKG_CONFIG_PATH to waybill's build/release, or install waybill: %w", err)
	}
	// Go's build cache ignores changes of pkg-config's answer and of the header, but not of this variable.
	library := sha256.New()
	library.Write(answer)
	for _, flag := range strings.Fields(string(answer)) {
		if folder, ok := strings.CutPrefix(flag, "-I"); ok {
			if header, err := os.ReadFile(filepath.Join(folder, "waybill.h")); err == nil {
				library.Write(header)
			}
		}
	}
	b.cflags = fmt.Sprintf("%s -DWAYBILL_C_IS=%x", cmp.Or(os.Getenv("CGO_CFLAGS"), "-O2 -g"), library.Sum(nil))
	// In the module in which this program is run.
	out, err := b.run("", "go", "list", "-m", "-f", "{{.Dir}}", "waybill.dev/go/kubelet", "waybill.dev/go")
	if err != nil {
		return fmt.Errorf("run this in a module that requires waybill.dev/go/kubelet, such as bindings/go/kubelet: %w", err)
	}
	modules := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(modules) != 2 {
		return fmt.Errorf("go list -m names %d modules instead of two: %q", len(modules), modules)
	}
	b.adapters, b.binding = modules[0], modules[1]
	return nil
}

// fetch downloads the kubelet's module.
func (b *builder) fetch(version string) error {
	if !strings.HasPrefix(version, "v") {
		version = "v" + version
	}
	if parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3); len(parts) >= 2 {
		b.minor = parts[0] + "." + parts[1]
	}
	if _, ok := tagsOf[b.minor]; !ok {
		return fmt.Errorf("%s is not known; known: %s", version, known())
	}
	// `go mod download` would count its version with the main module's.
	fetcher := filepath.Join(b.scratch, "fetch")
	if err := write(filepath.Join(fetcher, "go.mod"), []byte("module fetch\n")); err != nil {
		return err
	}
	out, err := b.run(fetcher, "go", "mod", "download", "-json", "k8s.io/kubernetes@"+version)
	var said []byte
	if err != nil {
		said = []byte(err.Error())
	} else if err = json.Unmarshal(out, &b.kubernetes); err == nil {
		said, err = os.ReadFile(b.kubernetes.GoMod)
	}
	// Also where Go fetches a newer one by itself: this program reads the sources, too.
	if needed := goNeeded.FindSubmatch(said); needed != nil && goversion.Compare("go"+string(needed[1]), runtime.Version()) > 0 {
		return fmt.Errorf("%s needs Go %s, and this program was built with %s: run it with GOTOOLCHAIN=go%[2]s", version, needed[1], runtime.Version())
	}
	if err == nil {
		out, err = os.ReadFile(b.kubernetes.Info)
	}
	if err == nil {
		err = json.Unmarshal(out, &b.kubernetes)
	}
	if err != nil {
		return fmt.Errorf("download k8s.io/kubernetes %s: %w", version, err)
	}
	return nil
}

// overlaySources puts the kubelet's files where its module is, in the overlay only: files in Go's module
// cache can't be overlaid themselves.
func (b *builder) overlaySources() error {
	changed, err := change.Sources(b.kubernetes.Dir)
	if err != nil {
		return err
	}
	for path, text := range changed {
		file := filepath.Join(b.scratch, "changed", path)
		if err := write(file, text); err != nil {
			return err
		}
		b.overlay[filepath.Join(b.module, path)] = file
	}
	return b.overlayFolder(b.kubernetes.Dir, b.module)
}

// overlayAdapters gives the adapters a go.mod that requires nothing: every module keeps the version that
// the kubelet's own go.mod says.
func (b *builder) overlayAdapters() error {
	folder := filepath.Join(b.scratch, "adapters")
	if err := b.overlayFolder(b.adapters, folder); err != nil {
		return err
	}
	return write(filepath.Join(folder, "go.mod"), []byte("module waybill.dev/go/kubelet\n\ngo 1.26\n"))
}

func (b *builder) overlayFolder(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == "testdata" || name == "test") {
			return filepath.SkipDir
		}
		below, err := filepath.Rel(from, path)
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go") || below == "go.mod" || below == "go.sum" {
			return err
		}
		if target := filepath.Join(to, below); b.overlay[target] == "" {
			b.overlay[target] = path
		}
		return nil
	})
}

// writeModule writes the kubelet's go.mod, with the modules that a release develops in its own tree
// replaced by what is published of them.
func (b *builder) writeModule() error {
	text, err := os.ReadFile(filepath.Join(b.kubernetes.Dir, "go.mod"))
	if err != nil {
		return err
	}
	goMod := filepath.Join(b.module, "go.mod")
	if err := write(goMod, text); err != nil {
		return err
	}
	out, err := b.run(b.module, "go", "mod", "edit", "-json")
	if err != nil {
		return err
	}
	var parsed struct {
		Go      string
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := json.Unmarshal(out, &parsed); err != nil {
		return fmt.Errorf("go mod edit -json: %w", err)
	}
	staged := "v0." + strings.TrimPrefix(b.kubernetes.Version, "v1.")
	edit := []string{"go", "mod", "edit",
		"-require=waybill.dev/go@v0.0.0", "-replace=waybill.dev/go=" + b.binding,
		"-require=waybill.dev/go/kubelet@v0.0.0", "-replace=waybill.dev/go/kubelet=" + filepath.Join(b.scratch, "adapters")}
	replaced := 0
	for _, r := range parsed.Replace {
		if r.New.Path == "./staging/src/"+r.Old.Path {
			edit = append(edit, "-replace="+r.Old.Path+"="+r.Old.Path+"@"+staged)
			replaced++
		}
	}
	if replaced == 0 {
		return fmt.Errorf("%s: expected replacements by ./staging/src/…, found none", filepath.Join(b.kubernetes.Dir, "go.mod"))
	}
	if b.minor == "1.35" {
		edit = append(edit, "-go=1.26") // the language of the adapters; its own `godebug` line stays
	}
	if _, err := b.run(b.module, edit...); err != nil {
		return err
	}
	var sums []byte
	for _, folder := range []string{b.kubernetes.Dir, b.adapters} {
		text, err := os.ReadFile(filepath.Join(folder, "go.sum"))
		if err != nil {
			return err
		}
		sums = append(sums, text...)
	}
	if err := write(filepath.Join(b.module, "go.sum"), sums); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": b.overlay})
	if err != nil {
		return err
	}
	return write(b.overlayFile(), overlay)
}

func (b *builder) overlayFile() string { return filepath.Join(b.scratch, "overlay.json") }

// flags has the tags with which upstream builds a kubelet, and that of the adapters for its version.
func (b *builder) flags() []string {
	return []string{"-mod=mod", "-overlay=" + b.overlayFile(), "-tags=" + strings.TrimSuffix("selinux,notest,"+tagsOf[b.minor], ",")}
}

func (b *builder) compile(made string) error {
	version := b.kubernetes.Version + "+waybill"
	minor, commit := strings.TrimPrefix(b.minor, "1."), b.kubernetes.Origin.Hash
	if commit == "" {
		commit = "unknown"
	}
	var ldflags []string
	for _, at := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
		for _, is := range []string{"gitVersion=" + version, "gitMajor=1", "gitMinor=" + minor, "gitCommit=" + commit,
			"gitTreeState=dirty", "buildDate=" + b.kubernetes.Time.UTC().Format(time.RFC3339)} {
			ldflags = append(ldflags, "-X "+at+"."+is)
		}
	}
	command := append([]string{"go", "build", "-trimpath", "-ldflags=-s -w " + strings.Join(ldflags, " "), "-o", made}, b.flags()...)
	if _, err := b.run(b.module, append(command, "k8s.io/kubernetes/cmd/kubelet")...); err != nil {
		return fmt.Errorf("build the kubelet: %w", err)
	}
	// Running it also shows that it finds the C library.
	out, err := b.run(b.scratch, made, "--version")
	if err != nil {
		return fmt.Errorf("the kubelet was built and does not run here; if its library is not found, run ldconfig or set LD_LIBRARY_PATH: %w", err)
	}
	if got := strings.TrimSpace(string(out)); got != "Kubernetes "+version {
		return fmt.Errorf("the kubelet was built and says that it is %q instead of %q", got, "Kubernetes "+version)
	}
	return nil
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
