package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Content that a node reads from the source itself. */
class SourceReadsTest {
  private static final long ROOT = WritableFileSystem.ROOT;

  @TempDir Path directory;

  private TwoNodes nodes;
  private Driver owner;

  @BeforeEach
  void open() throws Exception {
    nodes = new TwoNodes(directory);
    owner = nodes.owner;
    nodes.remote.attributes(ROOT);
  }

  @AfterEach
  void close() {
    nodes.close();
  }

  /** Another program writes to the source. */
  private void putAtSource(String path, String text) throws FsException {
    int root = owner.calls.openRoot(Driver.SOURCE);
    int directoryFile = root;
    FileName name = FileName.of(path);
    if (path.contains("/")) {
      directoryFile = owner.calls.openDirectory(root, FileName.of(path.split("/", 2)[0]));
      name = FileName.of(path.split("/", 2)[1]);
    }
    int flags = OutputCalls.O_CREAT | OutputCalls.O_RDWR;
    int file = owner.calls.open(directoryFile, name, flags, 0644);
    owner.calls.truncate(file, 0);
    owner.calls.write(file, Driver.bytes(text), 0);
    owner.calls.close(file);
    owner.calls.close(directoryFile);
    owner.calls.close(root);
  }

  private Opened openHere(String path, int flags) throws FsException {
    return nodes.remote.open(owner.node(path).inode(), flags, nodes.caller());
  }

  private Opened openHere(String path) throws FsException {
    return openHere(path, OutputCalls.O_RDONLY);
  }

  private String read(Opened file) throws FsException {
    return read(file, 0, 100);
  }

  private String read(Opened file, long offset, int size) throws FsException {
    return nodes.read(file.node().inode(), file.handle(), offset, size);
  }

  private boolean isOwnerAsked() {
    return nodes.link.asked.contains("read");
  }

  @Test
  void contentThatOnlyTheSourceHas_isReadThere() throws Exception {
    owner.mkdir("d");
    owner.drainAll();
    putAtSource("d/x", "a text of the source");
    Opened file = openHere("d/x");
    assertThat(read(file)).isEqualTo("a text of the source");
    assertThat(read(file, 2, 4)).isEqualTo("text");
    assertThat(read(file, 20, 10)).isEmpty();
    assertThat(read(file, 100, 10)).isEmpty();
    assertThat(isOwnerAsked()).isFalse();
  }

  @Test
  void contentThatOnlyTheSourceHas_isNotAskedFor() throws Exception {
    putAtSource("a", "text");
    Opened one = openHere("a");
    Opened two = openHere("a");
    int before = nodes.openCount();
    assertThat(read(one)).isEqualTo("text");
    nodes.link.isCut = true;
    assertThat(read(two)).isEqualTo("text");
    nodes.link.isCut = false;
    nodes.remote.release(one.node().inode(), one.handle());
    assertThat(read(two)).isEqualTo("text");
    assertThat(nodes.openCount()).isEqualTo(before + 1);
    nodes.remote.release(two.node().inode(), two.handle());
    Await.until("it is closed", () -> nodes.openCount() == before);
    assertThat(isOwnerAsked()).isFalse();
  }

  /** A kernel asks for the attributes before a program reads on. */
  @Test
  void openFile_whileTheOwnerIsAway_isReadOn() throws Exception {
    nodes.joinAgain(100);
    putAtSource("a", "text");
    Opened file = openHere("a");
    long inode = file.node().inode();
    nodes.link.isCut = true;
    assertThat(read(file)).isEqualTo("text");
    assertThat(nodes.remote.attributes(inode)).isEqualTo(file.node());
    nodes.remote.release(inode, file.handle());
    assertThatThrownBy(() -> nodes.remote.attributes(inode)).isInstanceOf(FsException.class);
    assertThatThrownBy(() -> nodes.read(inode)).isInstanceOf(FsException.class);
    nodes.link.isCut = false;
    assertThat(nodes.read(inode)).isEqualTo("text");
  }

  @Test
  void writeOnTheSameNode_isSeenAtOnce() throws Exception {
    putAtSource("a", "before");
    Opened writer = openHere("a", OutputCalls.O_RDWR);
    Opened reader = openHere("a");
    assertThat(read(reader)).isEqualTo("before");
    nodes.write(writer, 0, "beyond");
    assertThat(read(reader)).isEqualTo("beyond");
    assertThat(read(openHere("a"))).isEqualTo("beyond");
  }

  @Test
  void truncation_isSeenAtOnce() throws Exception {
    putAtSource("a", "before");
    Opened reader = openHere("a");
    assertThat(read(reader)).isEqualTo("before");
    NewAttributes shorter = new NewAttributes(null, null, null, 2L, null, null, 0, false);
    nodes.remote.setAttributes(reader.node().inode(), shorter, nodes.caller());
    assertThat(read(reader)).isEqualTo("be");
    Opened next = openHere("a", OutputCalls.O_RDWR | OutputCalls.O_TRUNC);
    assertThat(read(reader)).isEmpty();
    nodes.write(next, 0, "new");
    assertThat(read(reader)).isEqualTo("new");
  }

  @Test
  void writeWhileAnOpenIsAnswered_isSeen() throws Exception {
    putAtSource("a", "before");
    Opened writer = openHere("a", OutputCalls.O_RDWR);
    nodes.link.beforeOpened = () -> nodes.write(writer, 0, "beyond");
    Opened reader = openHere("a");
    assertThat(read(reader)).isEqualTo("beyond");
  }

  @Test
  void changeOnAnotherNode_isSeenByTheNextOpen() throws Exception {
    putAtSource("a", "before");
    Opened reader = openHere("a");
    assertThat(read(reader)).isEqualTo("before");
    owner.overwrite("a", 0, "beyond");
    Opened next = openHere("a");
    assertThat(read(next)).isEqualTo("beyond");
    // Both share the kernel's pages.
    assertThat(read(reader)).isEqualTo("beyond");
    owner.drainAll();
    assertThat(read(next)).isEqualTo("beyond");
  }

  @Test
  void changeOnAnotherNode_isSeenWithTheAttributes() throws Exception {
    putAtSource("a", "before");
    Opened reader = openHere("a");
    assertThat(read(reader)).isEqualTo("before");
    owner.append("a", " and after");
    nodes.remote.attributes(reader.node().inode());
    assertThat(read(reader)).isEqualTo("before and after");
  }

  @Test
  void fileThatWasRenamedAtTheMount_keepsItsContent() throws Exception {
    putAtSource("a", "one");
    putAtSource("b", "two");
    Opened reader = openHere("a");
    owner.rename("b", "a", 0);
    owner.drainAll();
    assertThat(read(reader)).isEqualTo("one");
    assertThat(read(openHere("a"))).isEqualTo("two");
  }

  @Test
  void anotherFileAtTheSamePlace_isTheOwnersMatter() throws Exception {
    putAtSource("a", "one");
    Opened reader = openHere("a");
    owner.calls.sourceRoot().children.remove(Driver.name("a"));
    putAtSource("a", "two");
    read(reader);
    assertThat(isOwnerAsked()).isTrue();
  }

  @Test
  void fileThatWasShortenedAtTheSource_isReadFromTheOwner() throws Exception {
    putAtSource("a", "before");
    Opened reader = openHere("a");
    assertThat(read(reader)).isEqualTo("before");
    putAtSource("a", "be");
    assertThat(read(reader)).isEqualTo("be");
    assertThat(isOwnerAsked()).isTrue();
  }

  @Test
  void fileWhoseStatusFails_isClosedAndReadFromTheOwner() throws Exception {
    putAtSource("a", "text");
    Opened file = openHere("a");
    int before = nodes.openCount();
    nodes.setStatusFailing();
    assertThat(read(file)).isEqualTo("text");
    assertThat(isOwnerAsked()).isTrue();
    assertThat(nodes.openCount()).isEqualTo(before);
  }
}
