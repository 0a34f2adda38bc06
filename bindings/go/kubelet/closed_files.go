package kubelet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubelet/config/v1alpha1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	configv1alpha1 "k8s.io/kubernetes/pkg/kubelet/apis/config/v1alpha1"
	configv1beta1 "k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// closedFiles are the files that a kubelet without waybill finds in image_manager/ if it is started
// in place of this one without `waybill export`: for each image that was pulled a record without
// credentials, for each open pull its intent. So it verifies images that it would otherwise presume
// preloaded.
//
// A file is on disk before the store's commit: a crash leaves one too many, never one too few. A
// kubelet's own file is neither replaced nor removed. Our files have ownMark behind them, so the
// store does not take them for a kubelet's.
type closedFiles struct {
	store     *store.Store
	directory string // image_manager/

	mu    sync.Mutex
	held  map[string]int  // names of files that calls under way need
	fresh map[string]bool // those that calls needed since begin
	// Intents that no pull has any more, but an image may: only a list tells the ID by which a kubelet
	// knows it. Those that the process before this one left count, too.
	kept     map[string]bool
	unsynced map[string]bool // folders with a file that may not be on disk
}

// guardsClosingLine begins a record that a guard left only to close its image (kClosingLine in
// migrations/kubelet_files/kubelet_file.h).
const guardsClosingLine = "waybill guard closes this image. No kubelet can read this, so none remembers it.\n"

// ownMark stands behind the final line end of what waybill writes (kOwnMark in the same file): nobody
// writes it by chance, and each kubelet reads JSON with blanks behind it.
const ownMark = " \t\t \t  \t"

// closedFile is one of them.
type closedFile struct {
	name string // "pulled/sha256-…"
	what string // the image ref or, of an intent, the image
}

const pulledFolder, pullingFolder = "pulled", "pulling"

func closedFileOf(folder, what string) closedFile {
	return closedFile{fmt.Sprintf("%s/sha256-%x", folder, sha256.Sum256([]byte(what))), what}
}

func recordFile(imageRef string) closedFile { return closedFileOf(pulledFolder, imageRef) }

// intentFiles has a file for the string as the pod has it, and one as runtimes list it: in full,
// and with the digest alone if there are tag and digest. A kubelet compares its intents with that.
func intentFiles(image string) []closedFile {
	spellings := []string{image}
	if parts, err := store.Library.ParseImage(context.Background(), waybill.ParseImage{Image: image}); err == nil && parts.Full != "" {
		spellings = append(spellings, parts.Full)
		if name, ok := strings.CutSuffix(parts.Full, "@"+parts.Digest); ok {
			spellings = append(spellings, strings.TrimSuffix(name, ":"+parts.Tag)+"@"+parts.Digest)
		}
	}
	var files []closedFile
	for _, one := range slices.Compact(spellings) {
		files = append(files, closedFileOf(pullingFolder, one))
	}
	return files
}

func (f closedFile) isIntent() bool { return strings.HasPrefix(f.name, pullingFolder) }

// content is in the form that kubelets of all releases read.
func (f closedFile) content() ([]byte, error) {
	is := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{Kind: kind, APIVersion: v1alpha1.SchemeGroupVersion.String()}
	}
	var file any = v1alpha1.ImagePulledRecord{TypeMeta: is("ImagePulledRecord"), ImageRef: f.what, LastUpdatedTime: metav1.Now()}
	if f.isIntent() {
		file = v1alpha1.ImagePullIntent{TypeMeta: is("ImagePullIntent"), Image: f.what}
	}
	text, err := json.Marshal(file)
	return append(text, "\n"+ownMark...), err
}

// codecs are the kubelet's for these files.
var codecs = sync.OnceValue(func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubeletconfig.AddToScheme, configv1alpha1.AddToScheme, configv1beta1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
})

// about returns as which of these files a kubelet reads what is in a file's place, the zero one if it can't; and
// whether it only closes, and is waybill's.
func about(name string, content []byte) (file closedFile, ours bool) {
	json, closes := bytes.CutPrefix(content, []byte(guardsClosingLine))
	ours = closes || bytes.HasSuffix(content, []byte("\n"+ownMark))
	object, _ := runtime.Decode(codecs().UniversalDecoder(), json)
	switch object := object.(type) {
	case *kubeletconfig.ImagePulledRecord:
		file, ours = recordFile(object.ImageRef), ours && len(object.CredentialMapping) == 0
	case *kubeletconfig.ImagePullIntent:
		file = closedFileOf(pullingFolder, object.Image)
	}
	if filepath.Dir(file.name) != filepath.Dir(name) {
		return closedFile{}, false
	}
	return file, ours
}

// errPlanted says that somebody else than the kubelet may have written a file.
var errPlanted = errors.New("somebody else may have written it")

// isPlanted says whether a file is anything but a regular one that nobody but root and this process'
// user can have written (WhyPlanted in migrations/kubelet_files/kubelet_places.h).
func isPlanted(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || !ok || stat.Nlink > 1 || stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

// readFile reads a file that is not planted. It never waits, as a pipe would have it.
func (f *closedFiles) readFile(name string) ([]byte, error) {
	file, err := os.OpenFile(filepath.Join(f.directory, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		return nil, errPlanted
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && isPlanted(info) {
		err = errPlanted
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, maxFileBytes+1))
}

// maxFileBytes is what waybill reads of a record (kMaxRecordFileBytes).
const maxFileBytes = 4 << 20

// closedFilesOf returns nil, which keeps none, if the store took over no kubelet directory.
func closedFilesOf(store *store.Store) *closedFiles {
	kubelets := store.Options().KubeletDirectory
	if kubelets == "" {
		return nil
	}
	f := &closedFiles{
		store: store, directory: filepath.Join(kubelets, "image_manager"),
		held: map[string]int{}, fresh: map[string]bool{}, kept: map[string]bool{}, unsynced: map[string]bool{},
	}
	// An error here shows when a file can't be written.
	for _, folder := range []string{pulledFolder, pullingFolder} {
		_ = os.MkdirAll(filepath.Join(f.directory, folder), 0o700)
		// A process before this one may have ended between a rename and its sync.
		_ = syncFolder(filepath.Join(f.directory, folder))
	}
	_ = syncFolder(f.directory)
	_ = syncFolder(kubelets)
	wanted, _ := f.wantedIntents()
	for name := range f.names(pullingFolder) {
		if _, open := wanted[name]; !open {
			f.kept[name] = true
		}
	}
	return f
}

// hold sees to it that the files of one folder exist and are on disk, and that they stay until release. The
// error says what it could not do.
func (f *closedFiles) hold(files ...closedFile) (release func(), err error) {
	if f == nil {
		return func() {}, nil
	}
	f.mu.Lock()
	for _, file := range files {
		f.held[file.name]++
	}
	f.mu.Unlock()
	err = f.ensure(files)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, file := range files {
			f.fresh[file.name] = true
			if f.held[file.name]--; f.held[file.name] == 0 {
				delete(f.held, file.name)
			}
		}
	}, err
}

// ensure writes those of one folder that are missing. Whoever finds a file there that another call just
// wrote syncs the folder, too.
func (f *closedFiles) ensure(files []closedFile) (err error) {
	if len(files) == 0 {
		return nil
	}
	folder := filepath.Dir(filepath.Join(f.directory, files[0].name))
	for _, file := range files {
		f.mu.Lock()
		written, e := f.write(file)
		f.unsynced[folder] = f.unsynced[folder] || written
		f.mu.Unlock()
		if e != nil { // so will the others
			err = fmt.Errorf("keep %q closed for a kubelet without waybill: %w", file.what, e)
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unsynced[folder] {
		if e := syncFolder(folder); e != nil {
			return errors.Join(err, e)
		}
		f.unsynced[folder] = false
	}
	return err
}

// keepIntents leaves the intents of an image to a list that begins from now on.
func (f *closedFiles) keepIntents(image string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range intentFiles(image) {
		f.kept[file.name], f.fresh[file.name] = true, true
	}
}

// dropIntents removes the intents of an image that no open pull has any more.
func (f *closedFiles) dropIntents(logger klog.Logger, image string) {
	if f == nil {
		return
	}
	if wanted, err := f.wantedIntents(); err == nil { // else the next list does it
		f.drop(logger, slices.DeleteFunc(intentFiles(image), func(file closedFile) bool { return wanted[file.name] == file })...)
	}
}

// drop removes files of ours that no call needs, and no list must tell of first.
func (f *closedFiles) drop(logger klog.Logger, files ...closedFile) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range files {
		if f.held[file.name] == 0 && !f.kept[file.name] {
			f.remove(logger, file.name)
		}
	}
}

// begin comes before putRight's data is read: files that calls need from now on stay.
func (f *closedFiles) begin() {
	if f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		clear(f.fresh)
	}
}

// afterList puts the files right by a complete list of the runtime's that the store took under
// waybill.ModeStrict: images that the ledger opens have no file of ours, all others one.
func (f *closedFiles) afterList(logger klog.Logger, images []waybill.ListedImage) {
	if f == nil {
		return
	}
	var refs []string
	closed := map[string]bool{} // every spelling
	for _, image := range images {
		name := image.ID
		if len(image.RepoTags) > 0 {
			name = image.RepoTags[0]
		}
		why, err := f.store.Explain(context.Background(), waybill.Explain{Image: name, ImageRef: image.ID})
		if err == nil && why.Preloaded != nil && len(why.Quarantined) == 0 && len(why.OtherHandlers) == 0 {
			continue
		}
		refs = append(refs, image.ID)
		for _, spelling := range append([]string{image.ID}, image.RepoDigests...) {
			closed[plainRef(spelling)] = true
		}
	}
	f.putRight(logger, refs, func(ref string) bool { return closed[plainRef(ref)] })
}

// plainRef is the digest of a ref that has one.
func plainRef(ref string) string {
	if _, digest, ok := strings.Cut(ref, "@"); ok {
		ref = digest
	}
	return strings.TrimPrefix(ref, "sha256:")
}

// isImageID says whether a ref is the ID by which a runtime lists its image.
func isImageID(ref string) bool {
	digest, err := hex.DecodeString(strings.TrimPrefix(ref, "sha256:"))
	return err == nil && len(digest) == sha256.Size
}

// afterRecords puts the files right by the records of a store whose rules are the kubelet's.
func (f *closedFiles) afterRecords(logger klog.Logger, keeps func(waybill.PulledRecord) bool) {
	if f == nil {
		return
	}
	stored, err := f.store.ListImages(context.Background(), waybill.ListImages{})
	if err != nil {
		logger.Error(err, "failed to list ImagePulledRecords, the files for a kubelet without waybill stay as they are")
		return
	}
	var refs []string
	for _, record := range stored.Records {
		if keeps(record) {
			refs = append(refs, record.ImageRef)
		}
	}
	f.putRight(logger, refs, func(ref string) bool { return slices.Contains(refs, ref) })
}

// afterStart is afterRecords with all of them.
func (f *closedFiles) afterStart() {
	f.begin()
	f.afterRecords(klog.Background(), func(waybill.PulledRecord) bool { return true })
}

// putRight writes the missing files of the refs and of the open pulls. It removes our files whose
// ref `keeps` does not know, and those of pulls that are no longer open.
func (f *closedFiles) putRight(logger klog.Logger, refs []string, keeps func(ref string) bool) {
	intents, err := f.wantedIntents()
	if err != nil {
		logger.Error(err, "failed to list ImagePullIntents, the files for a kubelet without waybill stay as they are")
		return
	}
	records := map[string]closedFile{}
	for _, ref := range refs {
		file := recordFile(ref)
		records[file.name] = file
	}
	// Without its record, an image may have only its intent to close it.
	err = f.ensure(slices.Collect(maps.Values(records)))
	if err == nil {
		err = f.ensure(slices.Collect(maps.Values(intents)))
	}
	if err == nil {
		f.sweep(logger, pullingFolder, intents, func(string) bool { return false })
	} else {
		logger.Error(err, "until this is mended, start a kubelet without waybill only after `waybill export`")
	}
	f.sweep(logger, pulledFolder, records, keeps)
}

func (f *closedFiles) wantedIntents() (map[string]closedFile, error) {
	intents, err := intentsOf(f.store)
	wanted := map[string]closedFile{}
	for _, intent := range intents {
		for _, file := range intentFiles(intent.Image) {
			wanted[file.name] = file
		}
	}
	return wanted, err
}

// names of the records or intents in a folder.
func (f *closedFiles) names(folder string) map[string]bool {
	names := map[string]bool{}
	entries, _ := os.ReadDir(filepath.Join(f.directory, folder))
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".tmp") {
			names[folder+"/"+entry.Name()] = true
		}
	}
	return names
}

// sweep removes files of ours that are neither wanted nor kept.
func (f *closedFiles) sweep(logger klog.Logger, folder string, wanted map[string]closedFile, keeps func(what string) bool) {
	for name := range f.names(folder) {
		if _, is := wanted[name]; is {
			continue
		}
		content, err := f.readFile(name)
		if err != nil {
			continue
		}
		if file, ours := about(name, content); !ours || keeps(file.what) {
			continue
		}
		f.mu.Lock()
		if f.held[name] == 0 && !f.fresh[name] {
			delete(f.kept, name)
			f.remove(logger, name)
		}
		f.mu.Unlock()
	}
}

// write makes the file, unless one that serves exists. Syncing its folder is left to the caller.
// f.mu is held.
func (f *closedFiles) write(file closedFile) (written bool, err error) {
	// JSON holds no other text, and no runtime lists it.
	if file.what == "" || !utf8.ValidString(file.what) {
		return false, nil
	}
	path := filepath.Join(f.directory, file.name)
	content, err := f.readFile(file.name)
	if err == nil {
		// A record that a kubelet can't read closes, too. One that is about another ref does not.
		if is, _ := about(file.name, content); is == file || is.name == "" && !file.isIntent() {
			return false, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errPlanted) { // a stock kubelet would read what is planted
		return false, err
	}
	if content, err = file.content(); err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	// The name is a kubelet's for an unfinished file: whoever finds it ignores it.
	if err := writeSynced(path+".tmp", content); err != nil {
		return false, errors.Join(err, os.Remove(path+".tmp"))
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return false, err
	}
	return true, nil
}

// remove removes a file if it is ours. It does not sync: until the removal is on disk, the file can
// only close. f.mu is held.
func (f *closedFiles) remove(logger klog.Logger, name string) {
	path := filepath.Join(f.directory, name)
	content, err := f.readFile(name)
	if err != nil {
		return
	}
	if _, ours := about(name, content); !ours {
		return
	}
	if err := os.Remove(path); err != nil {
		logger.Error(err, "failed to remove a file that keeps an image closed for a kubelet without waybill", "path", path)
	}
}

func writeSynced(path string, content []byte) error {
	// Not what somebody else put under that name.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
