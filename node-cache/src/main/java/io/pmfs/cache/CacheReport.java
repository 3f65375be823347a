package io.pmfs.cache;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The status of a node's cache.
 *
 * @param room copies and users; only root and the cache's own account see those of other users
 * @param connections connected mounts
 * @param copying copies being made
 * @param waiting files queued to be copied
 * @param answered requests answered with a copy
 * @param refused requests answered without a copy
 * @param copiedBytes bytes read from the source
 * @param failed failed attempts to copy a file
 * @param trouble which thread of the cache has failed recently, and why; null if none has
 */
public record CacheReport(
    Room room,
    int connections,
    int copying,
    int waiting,
    long answered,
    long refused,
    long copiedBytes,
    long failed,
    @Nullable String trouble) {
  /** Stands for a uid: copies of an earlier run whose user is unknown. */
  public static final int NOBODY = CopyKey.NOBODY;

  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create();

  /**
   * The space of the copies.
   *
   * @param capacityFiles how many inodes of the disk they may use
   * @param leftOpen copies that are still open although mounts have released them
   * @param users by uid, or {@link #NOBODY}
   */
  public record Room(
      long capacityBytes,
      long usedBytes,
      long capacityFiles,
      long usedFiles,
      long copies,
      long leftOpen,
      long evicted,
      Map<Integer, OfUser> users) {
    Room only(int user) {
      Map<Integer, OfUser> own = new TreeMap<>(users);
      own.keySet().retainAll(Set.of(user));
      return new Room(
          capacityBytes, usedBytes, capacityFiles, usedFiles, copies, leftOpen, evicted, own);
    }
  }

  /**
   * The use of the cache by one user.
   *
   * @param usedBytes size of the copies made for this user
   * @param usedFiles their inodes
   * @param openBytes size of the copies that this user's mounts may have open
   * @param leftOpen copies that are still open although these mounts have released them
   */
  public record OfUser(long usedBytes, long usedFiles, long openBytes, long leftOpen) {}

  CacheReport only(int user) {
    return new CacheReport(
        room.only(user),
        connections,
        copying,
        waiting,
        answered,
        refused,
        copiedBytes,
        failed,
        trouble);
  }

  public String toJson() {
    return GSON.toJson(this);
  }

  static @Nullable CacheReport ofJson(String json) {
    return GSON.fromJson(json, CacheReport.class);
  }
}
