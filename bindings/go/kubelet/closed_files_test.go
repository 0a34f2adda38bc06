package kubelet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// swappedNode is a node whose kubelet is swapped, without an export.
type swappedNode struct {
	t         *testing.T
	directory string // the kubelet's
	runtime   *runtimeImages
	rules     waybill.Mode
	store     *store.Store // of the latest kubelet with waybill inside
}

func newSwappedNode(t *testing.T, rules waybill.Mode) *swappedNode {
	return &swappedNode{t: t, directory: scratchDir(t), runtime: &runtimeImages{images: []kubecontainer.Image{listedAs(idOf('0'), pause)}}, rules: rules}
}

func idOf(digit rune) string { return "sha256:" + strings.Repeat(string(digit), 64) }

func (n *swappedNode) inside() *ImagePullManager {
	n.t.Helper()
	var err error
	setup := setupIn(n.directory)
	setup.ImageService, setup.Settings.Mode, setup.Settings.ShortNamesAnywhere = n.runtime, n.rules, new(false)
	n.store, err = OpenStore(quiet, setup)
	must(n.t, err)
	n.t.Cleanup(func() { n.store.Close() })
	manager, err := NewImagePullManager(n.store, n.runtime)
	must(n.t, err)
	return manager
}

// stock is a kubelet without waybill, on what the one before it left.
func (n *swappedNode) stock() pullmanager.ImagePullManager {
	n.t.Helper()
	if n.store != nil {
		n.store.Close() // as by a crash: nothing is written any more
	}
	stock := kubeletOverFiles(n.directory)
	stock.runtime = n.runtime
	must(n.t, stock.start(stock, step{policy: kubeletconfig.NeverVerifyPreloadedImages}))
	return stock.manager
}

func (n *swappedNode) brings(id string, names ...string) {
	n.runtime.images = append(n.runtime.images, listedAs(id, names...))
}

func (n *swappedNode) pull(manager pullmanager.ImagePullManager, image, id, tenant string) {
	n.t.Helper()
	must(n.t, manager.RecordPullIntent(logr.Discard(), image))
	n.brings(id, image)
	manager.RecordImagePulled(quiet, image, id, &kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{secretOf(tenant)}})
}

func (n *swappedNode) opens(what string, manager pullmanager.ImagePullManager, image, id, tenant string, want bool) {
	n.t.Helper()
	pull, err := manager.MustAttemptImagePull(quiet, image, id, func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
		secret := secretOf(tenant)
		secret.UID, secret.CredentialHash = "of "+tenant, "of "+tenant
		if tenant == "a" {
			secret = secretOf("a")
		}
		return []kubeletconfig.ImagePullSecret{secret}, nil, nil
	})
	if err != nil || pull == want {
		n.t.Errorf("%s, %s by %s: open %t, %v", what, image, tenant, !pull, err)
	}
}

// names are those of the files in a folder of image_manager/, all of mode 0600.
func (n *swappedNode) names(folder string) (names []string) {
	n.t.Helper()
	entries, err := os.ReadDir(filepath.Join(n.directory, "image_manager", folder))
	must(n.t, err)
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode() != 0o600 {
			n.t.Errorf("%s: %v, %v", entry.Name(), info.Mode(), err)
		}
		names = append(names, folder+"/"+entry.Name())
	}
	return names
}

// recordFile and intentFile are the paths of files below image_manager/.
func recordFile(imageRef string) string { return fileOf(pulledFolder, imageRef) }
func intentFile(image string) string    { return fileOf(pullingFolder, image) }

func fileOf(folder, what string) string {
	return fmt.Sprintf("%s/sha256-%x", folder, sha256.Sum256([]byte(what)))
}

const (
	imageOfA, laterOfA = "registry.example/a/app:1", "registry.example/a/later:1"
	imageOfB, byHand   = "registry.example/b/app:1", "registry.example/base/by-hand:1"
)

func TestBackToStockWithoutExport(t *testing.T) {
	for _, rules := range []waybill.Mode{waybill.ModeStrict, waybill.ModeKubelet} {
		n := newSwappedNode(t, rules)
		stock := n.stock()
		n.pull(stock, imageOfB, idOf('b'), "b")

		inside := n.inside()
		n.opens("taken over", inside, imageOfB, idOf('b'), "a", true) // by the hash
		n.opens("taken over", inside, imageOfB, idOf('b'), "b", false)
		n.pull(inside, imageOfA, idOf('a'), "a")
		same(t, "intents", n.names(pullingFolder), []string(nil))

		for range 2 {
			stock = n.stock()
			n.opens("stock", stock, imageOfA, idOf('a'), "b", false)
			n.opens("stock", stock, imageOfA, idOf('a'), "a", false) // until it is verified, or exported
			n.opens("stock", stock, pause, idOf('0'), "b", true)
			inside = n.inside()
			n.opens("inside again", inside, imageOfA, idOf('a'), "b", false)
			n.opens("inside again", inside, imageOfA, idOf('a'), "a", true)
			n.opens("inside again", inside, pause, idOf('0'), "b", true)
		}

		// A kubelet that pulls alone is still noticed.
		n.pull(n.stock(), laterOfA, idOf('e'), "a")
		inside = n.inside()
		if report := opening(t, n.store); rules == waybill.ModeStrict && !report.Unrecorded {
			t.Errorf("%v: a kubelet pulled without waybill: %+v", rules, report)
		}
		n.opens("after stock", inside, laterOfA, idOf('e'), "b", false)
	}
}

// What it wrote itself is not taken for a kubelet's work.
func TestARestartFindsNoGapInClosedFiles(t *testing.T) {
	n := newSwappedNode(t, waybill.ModeStrict)
	n.pull(n.inside(), imageOfA, idOf('a'), "a")
	must(t, n.store.Close())
	inside := n.inside()
	if report := opening(t, n.store); report.Unrecorded || report.Imported.NewlyWritten != "" {
		t.Errorf("%+v", report)
	}
	same(t, "open pulls", openPulls(t, n.store), []string(nil))
	n.brings(idOf('d'), byHand)
	n.opens("inside", inside, byHand, idOf('d'), "b", true)
}

// A kubelet that ends while it pulls: the image arrives later, or is not recorded yet.
func TestBackToStockInThePull(t *testing.T) {
	for _, image := range []string{imageOfA, "app", "docker.io/library/app:1", "app:1@" + idOf('f')} {
		n := newSwappedNode(t, waybill.ModeStrict)
		must(t, n.inside().RecordPullIntent(logr.Discard(), image))
		n.brings(idOf('a'), normalised(image))
		if _, digest, ok := strings.Cut(image, "@"); ok { // as runtimes list it
			n.runtime.images[1] = kubecontainer.Image{ID: idOf('a'), RepoDigests: []string{"docker.io/library/app@" + digest}}
		}
		stock := n.stock()
		n.opens("stock", stock, image, idOf('a'), "b", false)
		for _, name := range slices.Concat(n.runtime.images[1].RepoTags, n.runtime.images[1].RepoDigests) {
			n.opens("stock", stock, name, idOf('a'), "b", false)
		}
	}
}

// A runtime may call what a pull brought by a digest, and list it by its ID. Until a list tells that,
// the intent closes it, also after another pull of that name.
func TestBackToStockAfterAPullByDigest(t *testing.T) {
	digest := "registry.example/a/app@" + idOf('d')
	for _, then := range []string{"", "restart", "list"} {
		n := newSwappedNode(t, waybill.ModeStrict)
		inside := n.inside()
		pulled := func(ref string) {
			inside.RecordImagePulled(quiet, imageOfA, ref, &kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{secretOf("a")}})
		}
		must(t, inside.RecordPullIntent(logr.Discard(), imageOfA))
		// The list under way began before the image was there.
		n.runtime.during = func(context.Context) {
			n.runtime.during = nil
			pulled(digest)
		}
		inside.PruneUnknownRecords(quiet, nil, time.Now())
		n.runtime.images = append(n.runtime.images, kubecontainer.Image{ID: idOf('a'), RepoDigests: []string{digest}})
		switch then {
		case "restart":
			n.store.Close()
			n.runtime.err = errors.New("the runtime is away")
			inside = n.inside()
			n.runtime.err = nil
		case "list":
			inside.PruneUnknownRecords(quiet, nil, time.Now())
			same(t, "intents after a list", n.names(pullingFolder), []string(nil))
		}
		must(t, inside.RecordPullIntent(logr.Discard(), imageOfA))
		pulled(idOf('b'))
		n.opens("stock", n.stock(), imageOfA, idOf('a'), "b", false)
	}
}

// What an earlier version left, or an operator removed, is there again after the start.
func TestTheStartWritesMissingFiles(t *testing.T) {
	for _, rules := range []waybill.Mode{waybill.ModeStrict, waybill.ModeKubelet} {
		n := newSwappedNode(t, rules)
		inside := n.inside()
		n.pull(inside, imageOfA, idOf('a'), "a")
		must(t, inside.RecordPullIntent(logr.Discard(), laterOfA))
		n.store.Close()
		for _, folder := range []string{pulledFolder, pullingFolder} {
			must(t, os.RemoveAll(filepath.Join(n.directory, "image_manager", folder)))
		}
		n.inside()
		if !slices.Contains(n.names(pulledFolder), recordFile(idOf('a'))) {
			t.Errorf("%v: %v", rules, n.names(pulledFolder))
		}
		same(t, "intents", n.names(pullingFolder), []string{intentFile(laterOfA)})
	}
}

func TestClosedFilesGoWithTheirImages(t *testing.T) {
	for _, rules := range []waybill.Mode{waybill.ModeStrict, waybill.ModeKubelet} {
		n := newSwappedNode(t, rules)
		stocks := recordFile(idOf('b'))
		n.pull(n.stock(), imageOfB, idOf('b'), "b")
		inside := n.inside()
		n.pull(inside, imageOfA, idOf('a'), "a")
		n.pull(inside, laterOfA, idOf('e'), "a")
		n.runtime.images = slices.DeleteFunc(n.runtime.images, func(image kubecontainer.Image) bool { return image.ID == idOf('a') || image.ID == idOf('b') })
		if rules == waybill.ModeStrict {
			// A list that began before the pull of an image ended says nothing of it.
			inside.PruneUnknownRecords(quiet, nil, time.Now())
		}
		// The collector's list may be incomplete; under the kubelet's rules it counts.
		inside.PruneUnknownRecords(quiet, []string{idOf('0'), idOf('e')}, time.Now().Add(time.Hour))
		want := []string{recordFile(idOf('e')), stocks} // that one is the kubelet's own
		slices.Sort(want)
		same(t, string(rules), n.names(pulledFolder), want)
	}
}

// The ledger opens an image to all: a kubelet without waybill must find no file of ours.
func TestClosedFilesOfPreloadedImages(t *testing.T) {
	n := newSwappedNode(t, waybill.ModeStrict)
	inside := n.inside()
	n.pull(inside, pause, idOf('0'), "a")
	inside.PruneUnknownRecords(quiet, nil, time.Now())
	inside.PruneUnknownRecords(quiet, nil, time.Now())
	same(t, "after a list", n.names(pulledFolder), []string(nil))
	if _, err := n.store.DenyImage(quiet, waybill.DenyImage{ImageRef: idOf('0'), Reason: "not preloaded"}); err != nil {
		t.Fatal(err)
	}
	inside.PruneUnknownRecords(quiet, nil, time.Now())
	n.opens("stock", n.stock(), pause, idOf('0'), "b", false)
}

// No pull begins without its intent's file. One that ran is recorded, and the intent stays until its
// record's file can be written.
func TestAFullDiskClosesAndStopsNothing(t *testing.T) {
	n := newSwappedNode(t, waybill.ModeStrict)
	inside := n.inside()
	folder := func(name string) string { return filepath.Join(n.directory, "image_manager", name) }
	block := func(name string) { // the test may be root, so no mode stops it
		must(t, errors.Join(os.RemoveAll(folder(name)), os.WriteFile(folder(name), nil, 0o600)))
	}
	free := func(name string) {
		must(t, os.Remove(folder(name)))
	}
	block(pullingFolder)
	if err := inside.RecordPullIntent(logr.Discard(), imageOfA); err == nil {
		t.Error("a pull begins that a kubelet without waybill would not know of")
	}
	same(t, "open pulls", openPulls(t, n.store), []string(nil))
	free(pullingFolder)
	block(pulledFolder)
	n.pull(inside, imageOfA, idOf('a'), "a")
	n.opens("inside", inside, imageOfA, idOf('a'), "a", true)
	same(t, "intents", n.names(pullingFolder), []string{intentFile(imageOfA)})
	free(pulledFolder)
	inside.PruneUnknownRecords(quiet, nil, time.Now())
	inside.PruneUnknownRecords(quiet, nil, time.Now())
	same(t, "records", n.names(pulledFolder), []string{recordFile(idOf('a'))})
	same(t, "intents", n.names(pullingFolder), []string(nil))
}

// A file about another image than its name says counts as no record.
func TestAMisfiledRecordIsReplaced(t *testing.T) {
	n := newSwappedNode(t, waybill.ModeStrict)
	inside := n.inside()
	content, err := encodeBeta(&kubeletconfig.ImagePulledRecord{ImageRef: "another"})
	must(t, err)
	writeKubeletFile(t, n.directory, pulledFolder, idOf('a'), string(content))
	n.pull(inside, imageOfA, idOf('a'), "a")
	n.opens("stock", n.stock(), imageOfA, idOf('a'), "b", false)
}

// The kubelet's own manager over the accessor: its calls say which files there are.
func TestBackToStockFromTheAccessor(t *testing.T) {
	n := newSwappedNode(t, waybill.ModeKubelet)
	store := openTestStore(t, store.Options{Settings: waybill.Settings{Mode: waybill.ModeKubelet}, KubeletDirectory: n.directory, Unrecorded: "no"})
	accessor := newAccessor(t, store)
	for _, image := range []string{imageOfA, laterOfA} {
		must(t, accessor.WriteImagePullIntent(logr.Discard(), image))
	}
	if err := errors.Join(
		accessor.WriteImagePulledRecord(logr.Discard(), &kubeletconfig.ImagePulledRecord{ImageRef: idOf('a')}),
		accessor.WriteImagePulledRecord(logr.Discard(), &kubeletconfig.ImagePulledRecord{ImageRef: idOf('b')}),
		accessor.DeleteImagePullIntent(logr.Discard(), imageOfA),
		accessor.DeleteImagePulledRecord(logr.Discard(), idOf('b')),
	); err != nil {
		t.Fatal(err)
	}
	same(t, "records", n.names(pulledFolder), []string{recordFile(idOf('a'))})
	same(t, "intents", n.names(pullingFolder), []string{intentFile(laterOfA)})
	n.brings(idOf('a'), imageOfA)
	n.opens("stock", n.stock(), imageOfA, idOf('a'), "b", false)
}

// A list that is under way while a pull ends does not take its record away.
func TestAListKeepsWhatIsPulledMeanwhile(t *testing.T) {
	n := newSwappedNode(t, waybill.ModeStrict)
	inside := n.inside()
	n.runtime.during = func(context.Context) {
		n.runtime.during = nil
		n.pull(inside, imageOfA, idOf('a'), "a")
	}
	inside.PruneUnknownRecords(quiet, nil, time.Now())
	same(t, "records", n.names(pulledFolder), []string{recordFile(idOf('a'))})
}
