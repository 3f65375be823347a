package io.pmfs.settings;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.pmfs.cluster.members.ClusterSecret;
import io.pmfs.machine.MountFailure;
import io.pmfs.places.SourceIdentity;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The settings with which a session started. Its later daemons use only these, and not the command
 * line, environment, configuration file or symbolic links, which may have changed.
 *
 * @param id unique for each session
 * @param configuration the configuration as given, for reports
 * @param pinned the resolved values of options whose value depends on more than their text; empty
 *     for an option that no longer applies
 * @param secret the cluster's secret; null if there is none
 * @param foreground whether the log also goes to standard error
 * @param source null until the source is opened for the first time
 */
public record SessionSettings(
    UUID id,
    Configuration configuration,
    Map<MountOption<?>, List<String>> pinned,
    @Nullable ClusterSecret secret,
    boolean foreground,
    @Nullable SourceIdentity source) {
  private static final int FORMAT = 1;
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().serializeNulls().create();

  /** The settings of a new mount. */
  public static SessionSettings begin(
      Configuration configuration, MountSettings settings, Path logFile, boolean foreground)
      throws MountFailure {
    Map<MountOption<?>, List<String>> pinned = new TreeMap<>();
    pinned.put(MountOption.SOURCE, List.of(settings.source().path().toString()));
    pinned.put(
        MountOption.TIER, settings.copies().tiers().stream().map(TierSpec::exactText).toList());
    pinned.put(MountOption.LOG_FILE, List.of(logFile.toString()));
    put(pinned, MountOption.STATE_DIR, settings.metadata().stateDirectory());
    put(pinned, MountOption.NODE_CACHE, settings.source().cache());
    put(pinned, MountOption.ACCESS_LOG, settings.observation().accessLog());
    ClusterOptions cluster = settings.cluster();
    if (cluster != null) {
      boolean isListed = cluster.directory() == null;
      put(pinned, MountOption.CLUSTER_DIR, cluster.directory());
      pinned.put(
          MountOption.NODES, isListed ? List.of(String.join(",", cluster.nodes())) : List.of());
      pinned.put(MountOption.NODES_FILE, List.of());
      pinned.put(MountOption.CLUSTER_SECRET_FILE, List.of());
      if (!cluster.tls().isEmpty()) {
        List<String> files = cluster.tls().stream().map(Path::toString).toList();
        pinned.put(MountOption.CLUSTER_TLS, List.of(String.join(",", files)));
      }
    }
    return new SessionSettings(
        UUID.randomUUID(),
        configuration,
        pinned,
        cluster == null ? null : cluster.commonSecret(),
        foreground,
        null);
  }

  private static void put(
      Map<MountOption<?>, List<String>> pinned, MountOption<?> option, @Nullable Path path) {
    if (path != null) {
      pinned.put(option, List.of(path.toString()));
    }
  }

  /** Adds the identity of the opened source. */
  public SessionSettings of(SourceIdentity opened) {
    return new SessionSettings(id, configuration, pinned, secret, foreground, opened);
  }

  /** The typed settings, from this record alone. */
  public MountSettings toSettings(Surroundings surroundings) throws MountFailure {
    Path mountpoint = configuration.mountpoint();
    if (mountpoint == null) {
      throw MountFailure.usage("the session's settings name no mount point");
    }
    Map<MountOption<?>, Setting> settings = new TreeMap<>(configuration.settings());
    pinned.forEach(
        (option, values) -> {
          Setting given = settings.remove(option);
          if (!values.isEmpty()) {
            String origin = given == null ? Configuration.DEFAULT : given.origin();
            settings.put(option, new Setting(values, origin));
          }
        });
    return MountSettings.of(mountpoint, OptionValues.resumed(settings, secret, surroundings));
  }

  /** Saves to a file that only this user can read, atomically. */
  public void save(Path file) throws IOException {
    Path next = file.resolveSibling(file.getFileName() + ".new");
    Files.deleteIfExists(next);
    Files.createFile(
        next, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    Files.writeString(next, GSON.toJson(toJson()), UTF_8);
    Files.move(next, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }

  /** The settings without the secret, to be shown to others. */
  public JsonObject toReport() {
    JsonObject object = configuration.toJson();
    JsonObject texts = new JsonObject();
    pinned.forEach((option, values) -> texts.add(option.key(), GSON.toJsonTree(values)));
    object.add("pinned", texts);
    object.add("source", GSON.toJsonTree(source));
    return object;
  }

  /**
   * The settings of a mount, from {@link #toReport}; its cluster has no secret.
   *
   * @return null if the reporting daemon is too old to report the resolved values
   */
  public static @Nullable MountSettings ofReport(String report, Surroundings surroundings)
      throws MountFailure, IOException {
    SessionSettings reported = reported(report);
    return reported == null ? null : reported.toSettings(surroundings);
  }

  /** The settings of {@link #toReport}, not parsed; without a source from an older daemon. */
  public static @Nullable SessionSettings reported(String report) throws IOException {
    try {
      JsonObject object = JsonParser.parseString(report).getAsJsonObject();
      return object.get("pinned") == null
          ? null
          : new SessionSettings(
              UUID.randomUUID(),
              configuration(object),
              pinned(object),
              null,
              false,
              source(object));
    } catch (JsonParseException
        | IllegalStateException
        | IllegalArgumentException
        | NullPointerException
        | UnsupportedOperationException e) {
      throw new IOException("its answer is damaged: " + e.getMessage(), e);
    }
  }

  /** The options given here, by whatever means, with another value than in the other session. */
  public List<MountOption<?>> givenOtherwise(SessionSettings other, Surroundings surroundings) {
    return configuration.settings().keySet().stream()
        .filter(this::isGiven)
        .filter(option -> !isSame(option, texts(option), other.texts(option), surroundings))
        .toList();
  }

  /** Whether an option was given, by whatever means. */
  public boolean isGiven(MountOption<?> option) {
    Setting setting = configuration.settings().get(option);
    return setting != null && !setting.origin().startsWith(Configuration.DEFAULT);
  }

  private List<String> texts(MountOption<?> option) {
    Setting setting = configuration.settings().get(option);
    return pinned.getOrDefault(option, setting == null ? List.of() : setting.values());
  }

  /** Different texts may be the same value, such as 64M and 64MiB. */
  private static boolean isSame(
      MountOption<?> option, List<String> one, List<String> other, Surroundings surroundings) {
    if (one.equals(other) || one.isEmpty() || other.isEmpty()) {
      return one.equals(other);
    }
    return option.parse(one, surroundings).equals(option.parse(other, surroundings));
  }

  private JsonObject toJson() {
    JsonObject object = toReport();
    object.addProperty("format", FORMAT);
    object.addProperty("session", id.toString());
    object.addProperty("foreground", foreground);
    object.addProperty("clusterSecret", secret == null ? null : secret.kept());
    return object;
  }

  /** Loads a file of {@link #save}. */
  public static SessionSettings load(Path file) throws IOException {
    try {
      return of(JsonParser.parseString(Files.readString(file, UTF_8)).getAsJsonObject());
    } catch (JsonParseException
        | IllegalStateException
        | IllegalArgumentException
        | NullPointerException
        | UnsupportedOperationException e) {
      throw new IOException("it is damaged, or of another version: " + e.getMessage(), e);
    }
  }

  private static SessionSettings of(JsonObject object) {
    if (object.get("format").getAsInt() != FORMAT) {
      throw new IllegalArgumentException("format " + object.get("format"));
    }
    JsonElement secret = object.get("clusterSecret");
    SourceIdentity source = source(object);
    if (source == null) {
      throw new IllegalArgumentException("it names no source");
    }
    return new SessionSettings(
        UUID.fromString(object.get("session").getAsString()),
        configuration(object),
        pinned(object),
        secret.isJsonNull() ? null : ClusterSecret.ofKept(secret.getAsString()),
        object.get("foreground").getAsBoolean(),
        source);
  }

  private static @Nullable SourceIdentity source(JsonObject object) {
    SourceIdentity source = GSON.fromJson(object.get("source"), SourceIdentity.class);
    return source == null || source.form() == null || source.root() == null ? null : source;
  }

  private static Configuration configuration(JsonObject object) {
    Map<MountOption<?>, Setting> settings = Configuration.defaults();
    object
        .getAsJsonObject("options")
        .entrySet()
        .forEach(
            e -> {
              MountOption<?> option = MountOption.ofKey(e.getKey());
              if (option != null) {
                JsonObject one = e.getValue().getAsJsonObject();
                settings.put(
                    option, new Setting(texts(one.get("value")), one.get("from").getAsString()));
              }
            });
    return new Configuration(Path.of(object.get("mountpoint").getAsString()), settings);
  }

  private static Map<MountOption<?>, List<String>> pinned(JsonObject object) {
    Map<MountOption<?>, List<String>> pinned = new TreeMap<>();
    object
        .getAsJsonObject("pinned")
        .entrySet()
        .forEach(
            e -> {
              MountOption<?> option = MountOption.ofKey(e.getKey());
              if (option != null) {
                pinned.put(option, texts(e.getValue()));
              }
            });
    return pinned;
  }

  private static List<String> texts(JsonElement element) {
    if (!(element instanceof JsonArray array)) {
      return List.of(element.getAsString());
    }
    List<String> texts = new ArrayList<>();
    array.forEach(text -> texts.add(text.getAsString()));
    return texts;
  }
}
