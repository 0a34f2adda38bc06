package kubelet

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/kubelet/config/v1alpha1"
	"k8s.io/kubelet/config/v1beta1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	configv1alpha1 "k8s.io/kubernetes/pkg/kubelet/apis/config/v1alpha1"
	configv1beta1 "k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1"
	"waybill.dev/go"
)

// What waybill writes begins, if it only closes, and ends with (kClosingLine and kOwnMark in
// migrations/kubelet_files/kubelet_file.h).
const (
	guardsClosingLine = "waybill guard closes this image. No kubelet can read this, so none remembers it.\n"
	ownMark           = " \t\t \t  \t"
)

// codecs are the kubelet's for its files.
var codecs = sync.OnceValue(func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubeletconfig.AddToScheme, configv1alpha1.AddToScheme, configv1beta1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
})

// Every release reads what waybill marks as its own, with its own decoder, and none what only closes.
func TestKubeletsReadWaybillsMark(t *testing.T) {
	n := newSwappedNode(t, waybill.ModeStrict)
	inside := n.inside()
	must(t, inside.RecordPullIntent(logr.Discard(), laterOfA))
	n.pull(inside, imageOfA, idOf('a'), "a")
	written := func(path string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(n.directory, "image_manager", path))
		must(t, err)
		return string(content)
	}
	intent, record := written(intentFile(laterOfA)), written(recordFile(idOf('a')))
	marked := func(json []byte, err error) string {
		t.Helper()
		must(t, err)
		return string(json) + ownMark
	}
	exported := func(json []byte, err error) string { // ExportedForm
		return marked(append(json, '\n'), err)
	}
	proven := &kubeletconfig.ImagePulledRecord{ImageRef: idOf('b'), CredentialMapping: map[string]kubeletconfig.ImagePullCredentials{
		"registry.example/b/app": {NodePodsAccessible: true},
		"registry.example/c/app": {KubernetesSecrets: []kubeletconfig.ImagePullSecret{{UID: "u", Namespace: "c", Name: "pull", CredentialHash: "h"}}},
	}}
	files := []struct{ content, want string }{
		{intent, "intent " + laterOfA},
		{record, "record " + idOf('a') + ", 0 names"},
		{marked(encodeAs(v1alpha1.SchemeGroupVersion, proven)), "record " + idOf('b') + ", 2 names"},
		{marked(encodeBeta(proven)), "record " + idOf('b') + ", 2 names"},
		{marked(encodeBeta(&kubeletconfig.ImagePullIntent{Image: imageOfA})), "intent " + imageOfA},
		{exported(encodeBeta(proven)), "record " + idOf('b') + ", 2 names"},
		{guardsClosingLine + record, "unreadable"},
		{record + "x", "unreadable"},
	}
	directory := scratchDir(t)
	var paths, want []string
	for i, file := range files {
		if i < 6 && !strings.HasSuffix(file.content, "\n"+ownMark) {
			t.Errorf("not marked: %q", file.content)
		}
		path := filepath.Join(directory, string(rune('a'+i)))
		must(t, os.WriteFile(path, []byte(file.content), 0o600))
		paths, want = append(paths, path), append(want, file.want)
	}
	releases, err := filepath.Glob("testdata/decoders/*.mod")
	must(t, err)
	if len(releases) != 5 {
		t.Fatalf("%v", releases)
	}
	for _, release := range releases {
		command := exec.Command("go", slices.Concat([]string{"run", "-modfile", filepath.Base(release), "."}, paths)...)
		command.Dir = "testdata/decoders"
		command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
		out, err := command.Output()
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("%s: %v\n%s", release, err, failed.Stderr)
		}
		must(t, err)
		same(t, release, strings.Split(strings.TrimSpace(string(out)), "\n"), want)
	}
}

func encodeAs(version runtime.GroupVersioner, object runtime.Object) ([]byte, error) {
	json, _ := runtime.SerializerInfoForMediaType(codecs().SupportedMediaTypes(), runtime.ContentTypeJSON)
	return runtime.Encode(codecs().EncoderForVersion(json.Serializer, version), object)
}

func encodeBeta(object runtime.Object) ([]byte, error) {
	return encodeAs(v1beta1.SchemeGroupVersion, object)
}

// Nobody has to write a line end.
func TestAFileWithoutALineEndIsNotOurs(t *testing.T) {
	n := newSwappedNode(t, waybill.ModeStrict)
	inside := n.inside()
	record, err := encodeBeta(&kubeletconfig.ImagePulledRecord{ImageRef: idOf('a')})
	must(t, err)
	writeKubeletFile(t, n.directory, pulledFolder, idOf('a'), strings.TrimSuffix(string(record), "\n"))
	inside.PruneUnknownRecords(quiet, nil, time.Now())
	inside.PruneUnknownRecords(quiet, nil, time.Now())
	same(t, "records", n.names(pulledFolder), []string{recordFile(idOf('a'))})
}

// A kubelet without waybill would read it, or wait for it.
func TestAPlantedFileIsReplaced(t *testing.T) {
	for what, plant := range map[string]func(path, content string) error{
		"a pipe": func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"a link": func(path, content string) error {
			return errors.Join(os.WriteFile(path+".x", []byte(content), 0o600), os.Symlink(path+".x", path))
		},
		"a hard link": func(path, content string) error {
			return errors.Join(os.WriteFile(path+".x", []byte(content), 0o600), os.Link(path+".x", path))
		},
		"a mode": func(path, content string) error {
			return errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chmod(path, 0o666))
		},
	} {
		for _, late := range []bool{false, true} {
			n := newSwappedNode(t, waybill.ModeStrict)
			inside := n.inside()
			record, err := encodeBeta(&kubeletconfig.ImagePulledRecord{ImageRef: idOf('a'), CredentialMapping: map[string]kubeletconfig.ImagePullCredentials{
				"registry.example/a/app": {NodePodsAccessible: true}}})
			must(t, err)
			path := filepath.Join(n.directory, "image_manager", recordFile(idOf('a')))
			if late { // a list sees it
				n.pull(inside, imageOfA, idOf('a'), "a")
				must(t, os.Remove(path))
			}
			must(t, plant(path, string(record)))
			must(t, syscall.Mkfifo(filepath.Join(n.directory, "image_manager", intentFile(laterOfA)), 0o600))
			if !late {
				n.pull(inside, imageOfA, idOf('a'), "a")
			}
			inside.PruneUnknownRecords(quiet, nil, time.Now())
			inside.PruneUnknownRecords(quiet, nil, time.Now())
			info, err := os.Lstat(path)
			must(t, err)
			if stat := info.Sys().(*syscall.Stat_t); info.Mode() != 0o600 || stat.Nlink != 1 {
				t.Fatalf("%s, %t: %v, %d links", what, late, info.Mode(), stat.Nlink)
			}
			if content, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(content), ownMark) {
				t.Errorf("%s, %t: %q, %v", what, late, content, err)
			}
			must(t, inside.RecordPullIntent(logr.Discard(), laterOfA))
			n.opens(what, n.stock(), imageOfA, idOf('a'), "b", false)
		}
	}
}
