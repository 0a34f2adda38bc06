package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/klog/v2"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// closedFiles keeps the files in image_manager/ by which a kubelet without waybill, if it is started in
// place of this one without `waybill export`, verifies what it would otherwise presume preloaded. Which
// these are, the store says (waybill.ListKubeletFiles).
//
// putRight comes after each commit that may change them. No pull begins before its intent is on disk,
// and an intent stays until the record of what its pull brought is: a crash leaves one too many, never
// one too few.
type closedFiles struct {
	store    *store.Store
	kubelets string // the kubelet's directory

	mu       sync.Mutex      // so each call finds all that the calls before it wrote, on disk
	unsynced map[string]bool // folders with a file that may not be on disk
}

const pulledFolder, pullingFolder = "pulled", "pulling"

// closedFilesOf returns nil, which keeps none, if the store took over no kubelet directory.
func closedFilesOf(store *store.Store) *closedFiles {
	kubelets := store.Options().KubeletDirectory
	if kubelets == "" {
		return nil
	}
	// A process before this one may have ended between a rename and its sync.
	return &closedFiles{store: store, kubelets: kubelets, unsynced: map[string]bool{pulledFolder: true, pullingFolder: true}}
}

// putRight writes what is missing, and then removes what is needless. images: the runtime's complete
// list, which the store took; nil: none. The errors say what it could not write; then it removes nothing.
func (f *closedFiles) putRight(logger klog.Logger, images []waybill.ListedImage) (intents, records error) {
	if f == nil {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	files, err := f.store.ListKubeletFiles(context.Background(), waybill.ListKubeletFiles{KubeletDirectory: f.kubelets, Images: images})
	if err == nil {
		intents, records = f.write(pullingFolder, files.Missing), f.write(pulledFolder, files.Missing)
		err = errors.Join(intents, records)
	} else {
		intents, records = err, err
	}
	if err != nil {
		logger.Error(err, "until this is mended, start a kubelet without waybill only after `waybill export`")
		return intents, records
	}
	for _, path := range files.Needless {
		// Until the removal is on disk, the file can only close.
		if err := os.Remove(filepath.Join(f.kubelets, "image_manager", path)); err != nil {
			logger.Error(err, "failed to remove a file that keeps an image closed for a kubelet without waybill", "path", path)
		}
	}
	return nil, nil
}

// write writes those of the files that lie in a folder. f.mu is held.
func (f *closedFiles) write(folder string, files []waybill.MissingFile) error {
	directory := filepath.Join(f.kubelets, "image_manager")
	if err := os.MkdirAll(filepath.Join(directory, folder), 0o700); err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Dir(file.Path) != folder {
			continue
		}
		f.unsynced[folder] = true
		if err := writeFile(filepath.Join(directory, file.Path), file.Content); err != nil { // so will the others
			return fmt.Errorf("keep an image closed for a kubelet without waybill: %w", err)
		}
	}
	if !f.unsynced[folder] {
		return nil
	}
	for _, path := range []string{filepath.Join(directory, folder), directory, f.kubelets} {
		if err := syncFolder(path); err != nil {
			return err
		}
	}
	f.unsynced[folder] = false
	return nil
}

// writeFile puts a file in its place, whatever is there. Syncing its folder is left to the caller.
func writeFile(path, content string) error {
	// The name is a kubelet's for an unfinished file: whoever finds it ignores it.
	unfinished := path + ".tmp"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(unfinished))
	}
	return os.Rename(unfinished, path)
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
