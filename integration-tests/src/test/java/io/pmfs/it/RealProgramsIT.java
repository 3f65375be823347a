package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Programs as people use them, whose output on the mount must be that on the source, and again when
 * the kernel has forgotten what it read.
 */
@ParameterizedClass
@EnumSource(BridgeMode.class)
@TestInstance(Lifecycle.PER_CLASS)
final class RealProgramsIT {
  private static final Duration DEADLINE = Duration.ofMinutes(1);

  /** A program's name and what to do with it, as a shell script run in the tree. */
  record Use(String program, String what, String script) {
    @Override
    public String toString() {
      return what;
    }
  }

  /** Writes a tree with something for each program. */
  private static final String TREE =
      """
      set -e
      cd "$1"
      mkdir text bin lib data
      for i in $(seq 1 60); do seq "$i" $((i * 40)) > "text/$i"; done
      ln -s 1 text/link; ln text/2 text/hard; : > text/empty
      head -c 3000000 /dev/urandom > data/random
      head -c 20971520 /dev/urandom > data/large
      find text data -type f -exec sha256sum {} + > sums
      cp /bin/ls bin/ls
      ldd /bin/ls | awk '$3 ~ "^/" { print $3 }' | xargs -I{} cp -L {} lib/
      cp -L "$(ldconfig -p | awk '/libz\\.so\\.1 / { print $NF; exit }')" lib/libz.so.1
      if command -v git; then
        git init -q repository
        cd repository
        cp -r ../text .
        git add . && git -c user.name=t -c user.email=t@localhost commit -q -m one
        echo more >> text/5
        git -c user.name=t -c user.email=t@localhost commit -q -a -m two
        git gc -q
        cd ..
      fi
      if command -v sqlite3; then
        sqlite3 data/base.db 'create table t(a integer primary key, b text);
          with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
          insert into t select i, hex(i * 7919) from n; create index b on t(b);'
      fi
      if python3 -c 'import numpy' 2> /dev/null; then
        python3 -c 'import numpy; numpy.save("data/array.npy", numpy.arange(300000.0))'
      fi
      """;

  /** Serves the tree to a client over a socket of its own: whole files by sendfile, and a range. */
  private static final String NGINX =
      """
      d=$(mktemp -d)
      tree=$PWD
      cat > "$d/conf" <<END
      $([ "$(id -u)" != 0 ] || echo 'user root;')
      daemon off; master_process off; pid $d/pid; error_log $d/log;
      events { }
      http {
        access_log off; sendfile on; sendfile_max_chunk 1m;
        client_body_temp_path $d; proxy_temp_path $d; fastcgi_temp_path $d; uwsgi_temp_path $d; scgi_temp_path $d;
        server { listen unix:$d/socket; root $tree; }
      }
      END
      nginx -p "$d" -c "$d/conf" 2> /dev/null &
      for i in $(seq 300); do [ -S "$d/socket" ] && break; sleep 0.1; done
      get() { curl -sSf --max-time 30 --unix-socket "$d/socket" "$@" | sha256sum; }
      get http://tree/text/1; get http://tree/data/large; get -r 5000000-5123456 http://tree/data/large
      sha256sum text/1 data/large
      kill %1; wait; rm -r "$d"
      """;

  static List<Use> uses() {
    return List.of(
        new Use("find", "find", "find . -printf '%P %y %m %U %G %s %n %T@ %l\\n' | sort"),
        new Use("sha256sum", "sha256sum -c", "sha256sum -c sums | sort"),
        new Use("grep", "grep -r", "grep -rc 99 text | sort"),
        new Use("diff", "diff -r", "diff -r text text && echo same"),
        new Use("tar", "tar", "tar --sort=name -cf - text data | tar -tvf -"),
        new Use("tar", "tar extracted", "tar --sort=name -cf - text data lib | sha256sum"),
        new Use("rsync", "rsync -n", "rsync -n -a --checksum --itemize-changes ./ \"$SOURCE/\""),
        new Use("cp", "cp -a", "d=$(mktemp -d) && cp -a . $d/c && diff -r . $d/c; rm -r $d"),
        new Use("git", "git status", GIT + "status --porcelain=v2 --branch"),
        new Use("git", "git fsck", GIT + "fsck --full --strict 2>&1"),
        new Use("git", "git log", GIT + "log --stat --format=%H"),
        new Use("sqlite3", "sqlite3 immutable", "sqlite3 \"file:data/base.db?immutable=1\" " + SQL),
        new Use("sqlite3", "sqlite3 mode=ro", "sqlite3 \"file:data/base.db?mode=ro\" " + SQL),
        new Use("python3", "python3 mmap", "python3 -c '" + MMAP + "'"),
        new Use("python3", "numpy memmap", "python3 -c '" + NUMPY + "'"),
        new Use("python3", "sendfile", "python3 -c '" + SENDFILE + "' | sha256sum"),
        new Use("ldd", "execute", "bin/ls -l text lib"),
        new Use("ldd", "load a library", "LD_LIBRARY_PATH=\"$PWD/lib\" bin/ls text && " + MAPPED),
        new Use("python3", "ctypes", "python3 -c '" + CTYPES + "'"),
        new Use("nginx", "nginx sendfile", NGINX),
        new Use("dd", "dd direct", "dd if=data/random iflag=direct bs=64k status=none | sha256sum"),
        new Use("xxd", "splice", "cat data/random | sha256sum; tail -c 1000 data/random | xxd"));
  }

  private static final String GIT =
      "export GIT_OPTIONAL_LOCKS=0 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory"
          + " GIT_CONFIG_VALUE_0='*'; git -C repository ";
  private static final String SQL =
      "\"pragma integrity_check; select count(*), sum(a), max(b) from t where b > 'A'\"";
  private static final String MMAP =
      "import mmap, zlib; f = open(\"data/random\", \"rb\");"
          + "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); f.close();"
          + "print(zlib.crc32(m), zlib.crc32(m[::-4097]), len(m))";
  private static final String NUMPY =
      "import numpy; a = numpy.load(\"data/array.npy\", mmap_mode=\"r\");"
          + "print(a.sum(), a[::-977].sum(), a.shape)";
  private static final String SENDFILE =
      "import os, sys; f = os.open(\"data/random\", os.O_RDONLY); at = 0\nwhile True:"
          + "\n  n = os.sendfile(1, f, at, 1 << 20)\n  at += n\n  if n == 0: break";

  private static final String CTYPES =
      "import ctypes, os; path = os.getcwd() + \"/lib/libz.so.1\"; z = ctypes.CDLL(path);"
          + "d = open(\"data/random\", \"rb\").read(); print(z.crc32(0, d, len(d)));"
          + "print(any(path in line for line in open(\"/proc/self/maps\")))";

  /** The tree's own library is what was mapped. */
  private static final String MAPPED =
      "LD_LIBRARY_PATH=\"$PWD/lib\" ldd bin/ls | grep -c \"$PWD/lib\"";

  private static final List<BridgeMode> MODES = List.of(BridgeMode.values());

  @Parameter BridgeMode mode;
  private Installation pmfs;
  private Path source;
  private MountedPmfs mount;

  @SuppressWarnings("NullAway.Init")
  RealProgramsIT() {}

  @BeforeParameterizedClassInvocation
  void makeTreeAndMount() {
    Machine.requireFuse();
    pmfs = new Installation();
    source = pmfs.directory("source");
    run(source, List.of("bash", "-c", TREE, "tree", source.toString())).expect(0);
    mount = mode.mount(pmfs, Duration.ofMinutes(5), source);
  }

  @AfterParameterizedClassInvocation
  void unmount() {
    try {
      if (mount != null) {
        mount.close();
      }
    } finally {
      if (pmfs != null) {
        pmfs.close();
      }
    }
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("uses")
  void program_onTheMount_doesAsOnTheSource(Use use) {
    // Each program in one of the modes, and each mode with every third of them.
    mode.runsInEveryRunIf(MODES.get(uses().indexOf(use) % MODES.size()));
    Machine.requireCommand(use.program());
    if (use.what().startsWith("numpy")) {
      assumeTrue(source.resolve("data/array.npy").toFile().exists(), "needs numpy");
    }
    Command expected = script(source, use);
    assertThat(expected.exit()).as("on the source: %s", expected).isZero();
    for (int round = 0; round < 2; round++) {
      if (round == 1 && Machine.isRoot()) {
        Machine.forget(mount.mountpoint());
      }
      Command seen = script(mount.mountpoint(), use);
      assertThat(seen.exit()).as("round %d: %s", round, seen).isZero();
      assertThat(seen.out()).as("round %d: %s", round, seen).isEqualTo(expected.out());
      assertThat(seen.err()).as("round %d: %s", round, seen).isEqualTo(expected.err());
    }
  }

  private Command script(Path directory, Use use) {
    String inDirectory = "cd '" + directory + "' && { " + use.script() + "\n}";
    return run(directory, List.of("bash", "-c", "set -o pipefail; " + inDirectory));
  }

  private Command run(Path directory, List<String> line) {
    Map<String, String> environment =
        Map.of("SOURCE", source.toString(), "PWD", directory.toString(), "LC_ALL", "C");
    return Command.run(environment, DEADLINE, line);
  }
}
