import org.apache.paimon.Snapshot;
import org.apache.paimon.catalog.*;
import org.apache.paimon.codegen.CodeGenUtils;
import org.apache.paimon.codegen.Projection;
import org.apache.paimon.data.*;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.*;
import org.apache.paimon.operation.FileStoreScan;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.*;
import org.apache.paimon.table.source.*;
import org.apache.paimon.types.*;

import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.*;

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;

/**
 * Paimon's own core, asked line by line: a JSON object on stdin is a command, one on stdout its answer,
 * {"ok":true,...} or {"ok":false,"error":...,"type":...,"trace":...}. Its end of input is its end.
 */
public class PaimonEngine {
    final Map<String, Catalog> catalogs = new HashMap<>();

    public static void main(String[] a) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err); // keep stdout for the protocol only
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PaimonEngine e = new PaimonEngine();
        String line;
        while ((line = in.readLine()) != null) {
            if (line.trim().isEmpty()) continue;
            ObjectNode r;
            long t = System.nanoTime();
            try {
                JsonNode q = Values.JSON.readTree(line);
                if ("quit".equals(q.path("cmd").asText())) break;
                r = e.dispatch(q);
                r.put("ok", true);
            } catch (Throwable x) {
                r = Values.JSON.createObjectNode();
                r.put("ok", false);
                r.put("type", x.getClass().getName());
                r.put("error", String.valueOf(x.getMessage()));
                StringWriter w = new StringWriter();
                x.printStackTrace(new PrintWriter(w));
                r.put("trace", w.toString());
            }
            r.put("ms", (System.nanoTime() - t) / 1e6);
            out.println(Values.JSON.writeValueAsString(r));
            out.flush();
        }
        System.exit(0);
    }

    Catalog catalog(JsonNode q) {
        String wh = q.get("warehouse").asText();
        return catalogs.computeIfAbsent(wh, w -> {
            Options o = new Options();
            o.set("warehouse", w);
            o.set("cache-enabled", "false"); // always see what another engine wrote
            return CatalogFactory.createCatalog(CatalogContext.create(o));
        });
    }

    Identifier id(JsonNode q) {
        return Identifier.create(q.path("db").asText("db"), q.get("table").asText());
    }

    FileStoreTable table(JsonNode q) throws Exception {
        FileStoreTable t = (FileStoreTable) catalog(q).getTable(id(q));
        Map<String, String> dyn = Values.strMap(q.path("dynamic"));
        return dyn.isEmpty() ? t : t.copy(dyn);
    }

    ObjectNode dispatch(JsonNode q) throws Exception {
        ObjectNode r = Values.JSON.createObjectNode();
        String cmd = q.get("cmd").asText();
        switch (cmd) {
            case "ping": return r.put("java", System.getProperty("java.version")).put("pid", ProcessHandle.current().pid());
            case "create_database": catalog(q).createDatabase(q.path("db").asText("db"), true); return r;
            case "create_table": {
                Schema.Builder b = Schema.newBuilder();
                for (JsonNode c : q.get("columns")) b.column(c.get(0).asText(), Values.type(c.get(1)));
                b.partitionKeys(Values.strList(q.path("partition_keys"))).primaryKey(Values.strList(q.path("primary_keys"))).options(Values.strMap(q.path("options")));
                catalog(q).createDatabase(q.path("db").asText("db"), true);
                catalog(q).createTable(id(q), b.build(), false);
                return Described.describe(table(q));
            }
            case "drop_table": catalog(q).dropTable(id(q), true); return r;
            case "describe": return Described.describe(table(q));
            case "alter": {
                List<SchemaChange> l = new ArrayList<>();
                for (JsonNode c : q.get("changes")) l.add(change(c));
                catalog(q).alterTable(id(q), l, false);
                return Described.describe(table(q));
            }
            case "write": case "delete": { // rows: [{col: value, "_ROW_KIND": "+I|-U|+U|-D"}]
                FileStoreTable t = table(q);
                List<InternalRow> rows = new ArrayList<>();
                for (JsonNode n : q.get("rows")) {
                    GenericRow g = Values.row(n, t.rowType());
                    if (cmd.equals("delete")) g.setRowKind(RowKind.DELETE);
                    rows.add(g);
                }
                boolean ow = q.has("overwrite");
                List<CommitMessage> m = Writes.writeRows(t, q, rows, ow, q.has("bucket") ? q.get("bucket").asInt() : null);
                Writes.commit(t, q, m, ow ? Values.strMap(q.get("overwrite")) : null);
                return Described.snap(t);
            }
            case "rescale": { // ALTER bucket = N, then overwrite (all, or one partition spec)
                FileStoreTable old = table(q);
                List<InternalRow> rows = new ArrayList<>();
                Map<String, String> spec = Values.strMap(q.path("partition"));
                ReadBuilder rb = old.newReadBuilder();
                if (!spec.isEmpty()) rb.withPartitionFilter(spec);
                InternalRowSerializer ser = new InternalRowSerializer(old.rowType());
                try (RecordReaderIterator<InternalRow> it = new RecordReaderIterator<>(rb.newRead().executeFilter().createReader(rb.newScan().plan()))) {
                    while (it.hasNext()) rows.add(ser.copy(it.next()));
                }
                catalog(q).alterTable(id(q), SchemaChange.setOption("bucket", q.get("buckets").asText()), false);
                if (q.path("rewrite").asBoolean(true)) {
                    FileStoreTable t = table(q);
                    Writes.commit(t, q, Writes.writeRows(t, q, rows, true, null), spec);
                }
                return Described.snap(table(q));
            }
            case "compact": return Writes.compact(table(q), q);
            case "commit_compact": return Writes.commitCompact(table(q), q);
            case "delete_by_position": return Writes.deleteByPosition(table(q), q);
            case "read": return read(table(q), q, true);
            case "read_optimized": return readOptimized(catalog(q).getTable(new Identifier(q.path("db").asText("db"), q.get("table").asText() + "$ro")));
            case "plan": return read(table(q), q, false);
            case "files": { // every live manifest entry of the (latest | given) snapshot
                FileStoreTable t = table(q);
                ArrayNode a = r.putArray("files");
                FileStoreScan s = t.store().newScan();
                if (q.has("snapshot_id")) s.withSnapshot(q.get("snapshot_id").asLong());
                for (ManifestEntry e : s.plan().files()) a.add(Described.entry(t, e));
                return r;
            }
            case "manifests": { // raw: manifest lists, their metas and entries, index manifest
                FileStoreTable t = table(q);
                Snapshot s = q.has("snapshot_id") ? t.snapshot(q.get("snapshot_id").asLong()) : t.snapshotManager().latestSnapshot();
                r.set("snapshot", Values.JSON.readTree(s.toJson()));
                String[] lists = {s.baseManifestList(), s.deltaManifestList(), s.changelogManifestList()};
                String[] names = {"base", "delta", "changelog"};
                for (int i = 0; i < 3; i++) {
                    if (lists[i] == null) { r.putNull(names[i]); continue; }
                    ArrayNode a = r.putArray(names[i]);
                    for (ManifestFileMeta m : t.manifestListReader().read(lists[i])) {
                        ObjectNode o = a.addObject();
                        o.put("name", m.fileName()).put("size", m.fileSize()).put("added", m.numAddedFiles()).put("deleted", m.numDeletedFiles())
                            .put("schema_id", m.schemaId()).put("min_bucket", m.minBucket()).put("max_bucket", m.maxBucket())
                            .put("min_level", m.minLevel()).put("max_level", m.maxLevel()).put("min_row_id", m.minRowId()).put("max_row_id", m.maxRowId());
                        ArrayNode es = o.putArray("entries");
                        for (ManifestEntry e : t.manifestFileReader().read(m.fileName())) es.add(Described.entry(t, e));
                    }
                }
                if (s.indexManifest() != null) {
                    ArrayNode a = r.putArray("index");
                    for (IndexManifestEntry e : t.indexManifestFileReader().read(s.indexManifest())) a.add(e.toString());
                }
                return r;
            }
            case "snapshot": {
                FileStoreTable t = table(q);
                if (!q.has("snapshot_id")) return Described.snap(t);
                r.set("snapshot", Values.JSON.readTree(t.snapshot(q.get("snapshot_id").asLong()).toJson()));
                return r;
            }
            case "snapshots": {
                ArrayNode a = r.putArray("snapshots");
                Iterator<Snapshot> it = table(q).snapshotManager().snapshots();
                while (it.hasNext()) a.add(Values.JSON.readTree(it.next().toJson()));
                return r;
            }
            case "tag": {
                FileStoreTable t = table(q);
                if (q.has("snapshot_id")) t.createTag(q.get("tag").asText(), q.get("snapshot_id").asLong()); else t.createTag(q.get("tag").asText());
                return r;
            }
            case "delete_tag": table(q).deleteTag(q.get("tag").asText()); return r;
            case "rollback": table(q).rollbackTo(q.get("snapshot_id").asLong()); return Described.snap(table(q));
            case "expire": { // keep `retain` newest snapshots, delete the files of the others
                FileStoreTable t = table(q);
                int n = t.newExpireSnapshots().config(ExpireConfig.builder().snapshotRetainMax(q.path("retain").asInt(1))
                    .snapshotRetainMin(q.path("retain").asInt(1)).snapshotTimeRetain(Duration.ZERO).snapshotMaxDeletes(1000).build()).expire();
                return Described.snap(t).put("expired", n);
            }
            case "bucket_of": { // table's own extractor; for each row: partition, bucket, and the hash of the bucket key
                FileStoreTable t = table(q);
                RowKeyExtractor x = t.createRowKeyExtractor();
                RowType bk = t.schema().logicalBucketKeyType();
                Projection pj = bk.getFieldCount() == 0 ? null
                    : CodeGenUtils.newProjection(t.rowType(), t.rowType().getFieldIndices(bk.getFieldNames()));
                ArrayNode a = r.putArray("buckets");
                for (JsonNode n : q.get("rows")) {
                    GenericRow g = Values.row(n, t.rowType());
                    x.setRecord(g);
                    ObjectNode o = a.addObject();
                    o.set("partition", Described.partitionJson(t, x.partition()));
                    try { o.put("bucket", x.bucket()); } catch (UnsupportedOperationException | IllegalArgumentException e) { o.put("error", String.valueOf(e.getMessage())); }
                    if (pj != null) {
                        BinaryRow k = pj.apply(g);
                        o.put("key_hash", k.hashCode()).put("key_hex", hex(k.toBytes()));
                    }
                    // channel used by the sinks' partition+bucket shuffle among `channels` writers
                    int ch = q.path("channels").asInt(0);
                    if (ch > 0) o.put("channel", ChannelComputer.select(x.partition(), x.bucket(), ch));
                }
                return r.put("bucket_mode", t.bucketMode().toString()).put("function", t.coreOptions().bucketFunctionType().toString());
            }
            default: throw new IllegalArgumentException("unknown command " + cmd);
        }
    }

    static String hex(byte[] b) {
        StringBuilder s = new StringBuilder();
        for (byte x : b) s.append(String.format("%02x", x));
        return s.toString();
    }

    static SchemaChange change(JsonNode c) {
        String n = c.path("name").asText();
        switch (c.get("op").asText()) {
            case "add_column": return SchemaChange.addColumn(n, Values.type(c.get("type")), c.has("comment") ? c.get("comment").asText() : null,
                c.has("after") ? SchemaChange.Move.after(n, c.get("after").asText()) : c.path("first").asBoolean(false) ? SchemaChange.Move.first(n) : null);
            case "drop_column": return SchemaChange.dropColumn(n);
            case "rename_column": return SchemaChange.renameColumn(n, c.get("to").asText());
            case "change_type": return SchemaChange.updateColumnType(n, Values.type(c.get("type")));
            case "nullability": return SchemaChange.updateColumnNullability(n, c.get("nullable").asBoolean());
            case "move_first": return SchemaChange.updateColumnPosition(SchemaChange.Move.first(n));
            case "move_after": return SchemaChange.updateColumnPosition(SchemaChange.Move.after(n, c.get("after").asText()));
            case "set_option": return SchemaChange.setOption(c.get("key").asText(), c.get("value").asText());
            case "remove_option": return SchemaChange.removeOption(c.get("key").asText());
            default: throw new IllegalArgumentException(c.toString());
        }
    }

    /** The rows of a table's read-optimized form, as its catalog gives it. */
    ObjectNode readOptimized(Table t) throws Exception {
        ObjectNode r = Values.JSON.createObjectNode();
        ArrayNode rows = r.putArray("rows");
        ReadBuilder rb = t.newReadBuilder();
        for (Split s : rb.newScan().plan().splits()) {
            try (RecordReaderIterator<InternalRow> it = new RecordReaderIterator<>(rb.newRead().createReader(s))) {
                while (it.hasNext()) rows.add(Values.outRow(it.next(), t.rowType()));
            }
        }
        return r;
    }

    ObjectNode read(FileStoreTable t, JsonNode q, boolean withRows) throws Exception {
        ObjectNode r = Values.JSON.createObjectNode();
        Map<String, String> dyn = new HashMap<>();
        if (q.has("snapshot_id")) dyn.put("scan.snapshot-id", q.get("snapshot_id").asText());
        if (q.has("tag")) dyn.put("scan.tag-name", q.get("tag").asText());
        if (!dyn.isEmpty()) t = t.copy(dyn);
        ReadBuilder rb = t.newReadBuilder();
        RowType type = t.rowType();
        if (q.has("predicate")) rb.withFilter(Values.predicate(q.get("predicate"), t.rowType()));
        if (q.has("columns")) {
            List<String> cols = Values.strList(q.get("columns"));
            rb.withProjection(t.rowType().getFieldIndices(cols));
            type = t.rowType().project(cols);
        }
        List<Split> splits = rb.newScan().plan().splits();
        ArrayNode sa = r.putArray("splits");
        for (Split s0 : splits) {
            ObjectNode o = sa.addObject();
            DataSplit s;
            if (s0 instanceof DataSplit) s = (DataSplit) s0; else { o.put("class", s0.getClass().getName()); continue; }
            o.put("snapshot_id", s.snapshotId()).put("bucket", s.bucket()).put("total_buckets", s.totalBuckets())
                .put("bucket_path", s.bucketPath()).put("raw_convertible", s.rawConvertible()).put("row_count", s.rowCount());
            o.set("partition", Described.partitionJson(t, s.partition()));
            ArrayNode fs = o.putArray("files");
            for (DataFileMeta f : s.dataFiles()) fs.add(q.path("details").asBoolean(false) ? Described.file(t, f) : JsonNodeFactory.instance.textNode(f.fileName()));
            if (s.deletionFiles().isPresent()) {
                ArrayNode ds = o.putArray("deletion_files");
                for (DeletionFile d : s.deletionFiles().get()) if (d == null) ds.addNull(); else ds.add(d.toString());
            }
        }
        if (!withRows) return r;
        boolean perSplit = q.path("per_split").asBoolean(false);
        ArrayNode rows = r.putArray("rows");
        TableRead tr = rb.newRead();
        if (q.path("exact").asBoolean(true)) tr = tr.executeFilter(); // else only file-level skipping
        tr.withIOManager(Writes.io());
        for (int i = 0; i < splits.size(); i++) {
            ArrayNode dst = perSplit ? ((ObjectNode) sa.get(i)).putArray("rows") : rows;
            try (RecordReaderIterator<InternalRow> it = new RecordReaderIterator<>(tr.createReader(splits.get(i)))) {
                while (it.hasNext()) {
                    InternalRow x = it.next();
                    ObjectNode o = Values.outRow(x, type);
                    if (x.getRowKind() != RowKind.INSERT) o.put("_ROW_KIND", x.getRowKind().shortString());
                    dst.add(o);
                }
            }
        }
        return r;
    }
}
