import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileMetadata;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.PartitionData;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

/**
 * Metadata-only Iceberg tables as Java's own library writes them, and Java's own planner over them, timed.
 *
 * <pre>
 * make LOCATION FILES FILES_PER_MANIFEST FORMAT_VERSION
 * deletes LOCATION FILES FILES_PER_MANIFEST FORMAT_VERSION
 * plan LOCATION ROUNDS [NAME] a line for each filter, or that one: name, files, first call, best of the rounds (seconds)
 * files LOCATION NAME         a line for each file that the filter keeps: its path
 * </pre>
 */
public final class IcebergTables {
  static final long FIRST_DAY = 19_723; // 2024-01-01
  static final int DAYS = 365;
  static final int REGIONS = 20;
  static final long IDS = 1_000_000_000L;
  static final long ID_SPAN = 1_000_000L;
  static final long DAY_MICROS = 86_400_000_000L;

  static final Schema SCHEMA = new Schema(
      Types.NestedField.required(1, "id", Types.LongType.get()),
      Types.NestedField.optional(2, "region", Types.StringType.get()),
      Types.NestedField.required(3, "ts", Types.TimestampType.withZone()),
      Types.NestedField.optional(4, "amount", Types.DecimalType.of(12, 2)),
      Types.NestedField.optional(5, "price", Types.DoubleType.get()),
      Types.NestedField.optional(6, "qty", Types.IntegerType.get()),
      Types.NestedField.optional(7, "shipped", Types.DateType.get()),
      Types.NestedField.optional(8, "name", Types.StringType.get()),
      Types.NestedField.optional(9, "note", Types.StringType.get()),
      Types.NestedField.optional(10, "score", Types.FloatType.get()),
      Types.NestedField.optional(11, "flag", Types.BooleanType.get()),
      Types.NestedField.optional(12, "trace", Types.UUIDType.get()));

  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "make" -> make(args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3]), args[4]);
      case "plan" -> plan(args[1], Integer.parseInt(args[2]), args.length > 3 ? args[3] : null);
      case "files" -> files(args[1], args[2]);
      case "deletes" -> withDeletes(args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3]), args[4]);
      default -> throw new IllegalArgumentException("make, deletes, plan or files, not " + args[0]);
    }
  }

  static void make(String location, int files, int perManifest, String version) {
    Table table = new HadoopTables(new Configuration()).create(
        SCHEMA, PartitionSpec.builderFor(SCHEMA).day("ts").build(),
        Map.of("format-version", version, "write.metadata.delete-after-commit.enabled", "true",
            "write.metadata.previous-versions-max", "2"), location);
    int third = (files + 2) / 3;
    for (int from = 0; from < files; from += perManifest) {
      // The partitioning evolves after each third of the files: day, then day and region, then month and bucket.
      int era = from / third;
      if (era == 1 && table.specs().size() == 1) {
        table.updateSpec().addField("region").commit();
      } else if (era == 2 && table.specs().size() == 2) {
        table.updateSpec().removeField("ts_day").removeField("region")
            .addField(Expressions.month("ts")).addField(Expressions.bucket("id", 16)).commit();
      }
      AppendFiles append = table.newFastAppend();
      for (int i = from; i < Math.min(from + perManifest, files); i++) {
        append.appendFile(file(table, i, files));
      }
      append.commit();
    }
  }

  /** Three specs with some 6,700 partitions each, and a position delete file for every tenth data file. */
  static void withDeletes(String location, int files, int perManifest, String version) {
    Table table = new HadoopTables(new Configuration()).create(
        SCHEMA, PartitionSpec.builderFor(SCHEMA).bucket("id", 6667).build(),
        Map.of("format-version", version, "write.metadata.delete-after-commit.enabled", "true",
            "write.metadata.previous-versions-max", "2"), location);
    int third = (files + 2) / 3;
    for (int from = 0; from < files; from += perManifest) {
      int era = from / third;
      if (era == 1 && table.specs().size() == 1) {
        table.updateSpec().removeField("id_bucket").addField("region").addField(Expressions.bucket("id", 333))
            .commit();
      } else if (era == 2 && table.specs().size() == 2) {
        table.updateSpec().removeField("region").removeField("id_bucket_333")
            .addField(Expressions.day("ts")).addField(Expressions.bucket("id", 55)).commit();
      }
      AppendFiles append = table.newFastAppend();
      List<DataFile> deleted = new ArrayList<>();
      for (int i = from; i < Math.min(from + perManifest, files); i++) {
        DataFile file = file(table, i, files);
        append.appendFile(file);
        if (i % 10 == 0) {
          deleted.add(file);
        }
      }
      append.commit();
      RowDelta delta = table.newRowDelta();
      for (DataFile file : deleted) {
        delta.addDeletes(FileMetadata.deleteFileBuilder(table.specs().get(file.specId()))
            .ofPositionDeletes()
            .withPath(file.location() + ".deletes.parquet")
            .withFormat(FileFormat.PARQUET)
            .withFileSizeInBytes(2_000)
            .withRecordCount(Math.floorMod(mix(file.recordCount()), 5_000L) + 1)
            .withReferencedDataFile(file.location())
            .withPartition(file.partition())
            .build());
      }
      delta.commit();
    }
  }

  /** The file at a place in the table: a pure function of the place, so that every run makes the same table. */
  static DataFile file(Table table, int place, int files) {
    long seed = mix(place);
    long day = FIRST_DAY + (long) place * DAYS / files;
    long start = day * DAY_MICROS + Math.floorMod(seed, DAY_MICROS - 3_600_000_000L);
    long id = Math.floorMod(mix(seed), IDS);
    String region = String.format("region-%02d", Math.floorMod(mix(seed + 1), REGIONS));
    int qty = (int) Math.floorMod(mix(seed + 2), 1000L);
    Map<Integer, Object> lower = new HashMap<>();
    Map<Integer, Object> upper = new HashMap<>();
    bound(lower, upper, 1, id, id + ID_SPAN);
    bound(lower, upper, 2, region, region);
    bound(lower, upper, 3, start, start + 3_600_000_000L - 1);
    bound(lower, upper, 4, java.math.BigDecimal.valueOf(qty * 10L, 2), java.math.BigDecimal.valueOf(qty * 1000L, 2));
    bound(lower, upper, 5, qty * 0.5, qty * 1.5);
    bound(lower, upper, 6, qty, qty + 100);
    bound(lower, upper, 7, (int) day, (int) day + 30);
    bound(lower, upper, 8, "customer-" + qty, "customer-" + (qty + 90));
    bound(lower, upper, 9, "a note of sixtee", "z note of sixtef");
    bound(lower, upper, 10, qty * 0.25f, qty * 0.75f);
    bound(lower, upper, 11, false, true);
    bound(lower, upper, 12, new UUID(seed >>> 2, 1), new UUID((seed >>> 2) + 1, 2));
    long rows = 10_000 + Math.floorMod(seed, 1000L);
    Map<Integer, Long> sizes = new HashMap<>();
    Map<Integer, Long> counts = new HashMap<>();
    Map<Integer, Long> nulls = new HashMap<>();
    for (int field = 1; field <= 12; field++) {
      sizes.put(field, 4096L * field);
      counts.put(field, rows);
      nulls.put(field, field % 3 == 2 ? Math.floorMod(seed, 5L) : 0L);
    }
    PartitionSpec spec = table.spec();
    DataFiles.Builder builder = DataFiles.builder(spec)
        .withPath(table.location() + "/data/" + new UUID(seed, mix(seed + 3)) + ".parquet")
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(100_000_000L + Math.floorMod(mix(seed + 4), 50_000_000L))
        .withSplitOffsets(List.of(4L, 67_108_868L))
        .withMetrics(new Metrics(rows, sizes, counts, nulls, Map.of(5, 0L, 10, 0L), bytes(lower), bytes(upper)));
    return builder.withPartition(partition(spec, id, region, start)).build();
  }

  static PartitionKey partition(PartitionSpec spec, long id, String region, long start) {
    GenericRecord row = GenericRecord.create(SCHEMA);
    row.setField("id", id);
    row.setField("region", region);
    row.setField("ts", java.time.OffsetDateTime.ofInstant(
        java.time.Instant.EPOCH.plus(start, java.time.temporal.ChronoUnit.MICROS), java.time.ZoneOffset.UTC));
    PartitionKey key = new PartitionKey(spec, SCHEMA);
    key.partition(new InternalRecordWrapper(SCHEMA.asStruct()).wrap(row));
    return key;
  }

  static void bound(Map<Integer, Object> lower, Map<Integer, Object> upper, int field, Object low, Object high) {
    lower.put(field, low);
    upper.put(field, high);
  }

  static Map<Integer, ByteBuffer> bytes(Map<Integer, Object> bounds) {
    return bounds.entrySet().stream().collect(Collectors.toMap(Map.Entry::getKey, entry -> {
      Type type = SCHEMA.findType(entry.getKey());
      return Conversions.toByteBuffer(type, entry.getValue());
    }));
  }

  /** SplitMix64: any place to a number that looks random. */
  static long mix(long value) {
    long z = value + 0x9E3779B97F4A7C15L;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  static Map<String, Expression> filters() {
    Map<String, Expression> filters = new java.util.LinkedHashMap<>();
    filters.put("all", Expressions.alwaysTrue());
    filters.put("region", Expressions.equal("region", "region-07"));
    filters.put("in200", Expressions.in("id",
        LongStream.range(0, 200).map(i -> Math.floorMod(mix(i * 7919), IDS)).boxed().toArray()));
    filters.put("day", Expressions.and(
        Expressions.greaterThanOrEqual("ts", "2024-03-15T00:00:00+00:00"),
        Expressions.lessThan("ts", "2024-03-16T00:00:00+00:00")));
    return filters;
  }

  static void files(String location, String name) throws Exception {
    Table table = new HadoopTables(new Configuration()).load(location);
    StringBuilder paths = new StringBuilder();
    try (CloseableIterable<FileScanTask> tasks = table.newScan().filter(filters().get(name)).planFiles()) {
      for (FileScanTask task : tasks) {
        paths.append(task.file().location()).append('\n');
      }
    }
    System.out.print(paths);
  }

  static void plan(String location, int rounds, String only) throws Exception {
    Map<String, Expression> filters = filters();
    if (only != null) {
      filters.keySet().retainAll(java.util.Set.of(only));
    }
    ExecutorService workers = Executors.newFixedThreadPool(2);
    try {
      for (Map.Entry<String, Expression> filter : filters.entrySet()) {
        double first = 0;
        double best = Double.MAX_VALUE;
        long found = 0;
        for (int round = 0; round <= rounds; round++) {
          long start = System.nanoTime();
          Table table = new HadoopTables(new Configuration()).load(location);
          found = 0;
          try (CloseableIterable<FileScanTask> tasks =
              table.newScan().filter(filter.getValue()).planWith(workers).planFiles()) {
            for (FileScanTask task : tasks) {
              found += task.file().recordCount() > 0 ? 1 : 0;
            }
          }
          double took = (System.nanoTime() - start) / 1e9;
          if (round == 0) {
            first = took;
          } else {
            best = Math.min(best, took);
          }
        }
        System.out.printf("%s %d %.3f %.3f%n", filter.getKey(), found, first, rounds > 0 ? best : first);
      }
    } finally {
      workers.shutdownNow();
    }
  }
}
