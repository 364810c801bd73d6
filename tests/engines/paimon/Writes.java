import org.apache.paimon.AppendOnlyFileStore;
import org.apache.paimon.Snapshot;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.append.dataevolution.*;
import org.apache.paimon.data.*;
import org.apache.paimon.deletionvectors.*;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.*;
import org.apache.paimon.manifest.*;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.operation.FileStoreScan;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.SpecialFields;
import org.apache.paimon.table.sink.*;
import org.apache.paimon.table.source.EndOfScanException;
import org.apache.paimon.utils.Pair;

import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.*;

import java.util.*;

/** What changes a table's files: rows written, compaction, deletion vectors, and their commits. */
final class Writes {
    private Writes() {}

    static IOManager io() { return IOManager.create(System.getProperty("java.io.tmpdir")); }

    static void commit(FileStoreTable t, JsonNode q, List<CommitMessage> msgs, Map<String, String> overwrite) throws Exception {
        String user = q.path("commit_user").asText("engine-" + UUID.randomUUID());
        try (TableCommitImpl c = t.newCommit(user)) {
            if (overwrite != null) c.withOverwrite(overwrite);
            c.ignoreEmptyCommit(q.path("ignore_empty").asBoolean(true));
            c.commit(q.path("commit_id").asLong(Long.MAX_VALUE), msgs);
        }
    }

    static List<CommitMessage> writeRows(FileStoreTable t, JsonNode q, Iterable<InternalRow> rows, boolean overwrite, Integer bucket) throws Exception {
        String user = q.path("commit_user").asText("engine");
        try (TableWriteImpl<?> w = t.newWrite(user)) {
            w.withIOManager(io());
            w.withIgnorePreviousFiles(overwrite);
            for (InternalRow r : rows) if (bucket == null) w.write(r); else w.write(r, bucket);
            return w.prepareCommit(q.path("wait_compaction").asBoolean(true), q.path("commit_id").asLong(Long.MAX_VALUE));
        }
    }

    /** As Flink's and Spark's compactors do: row-tracking tables get _ROW_ID and _SEQUENCE_NUMBER columns in the rewritten file. */
    static void keepRowIds(FileStoreTable t, BaseAppendFileStoreWrite w) {
        if (t.coreOptions().rowTrackingEnabled()) w.withWriteType(SpecialFields.rowTypeWithRowTracking(t.rowType()));
    }

    /** full|minor compaction; PK and bucketed append through the writer, unaware append through the coordinator. */
    static ObjectNode compact(FileStoreTable t, JsonNode q) throws Exception {
        boolean full = q.path("full").asBoolean(true);
        Map<String, String> dyn = new HashMap<>();
        dyn.put("write-only", "false");
        t = t.copy(dyn);
        List<CommitMessage> msgs = new ArrayList<>();
        ArrayNode tasks = Values.JSON.createArrayNode();
        if (t.coreOptions().dataEvolutionEnabled()) { // the plain coordinator would lose the row ids of such a table
            DataEvolutionCompactCoordinator co =
                new DataEvolutionCompactCoordinator(
                    full ? t.copy(Collections.singletonMap("compaction.min.file-num", "2")) : t, false, false);
            try {
                while (true) {
                    List<DataEvolutionCompactTask> l = co.plan();
                    for (DataEvolutionCompactTask k : l) msgs.add(k.doCompact(t, "engine"));
                }
            } catch (EndOfScanException e) { /* over */ }
        } else if (t.primaryKeys().isEmpty() && t.bucketMode() == BucketMode.BUCKET_UNAWARE) {
            // "full": take any 2 small files; "minor": honour compaction.min.file-num of the table
            FileStoreTable ct = full ? t.copy(Collections.singletonMap("compaction.min.file-num", "2")) : t;
            AppendCompactCoordinator co = new AppendCompactCoordinator(ct, false);
            String user = q.path("commit_user").asText("engine");
            BaseAppendFileStoreWrite w = (BaseAppendFileStoreWrite) ((AppendOnlyFileStore) ct.store()).newWrite(user);
            w.withIOManager(io());
            keepRowIds(t, w);
            try {
                while (true) {
                    List<AppendCompactTask> l = co.run();
                    for (AppendCompactTask k : l) {
                        msgs.add(k.doCompact(ct, w));
                        ObjectNode o = tasks.addObject();
                        ArrayNode b = o.putArray("before"), c = o.putArray("after");
                        k.compactBefore().forEach(f -> b.add(f.fileName()));
                        k.compactAfter().forEach(f -> c.add(f.fileName()));
                    }
                    if (l.isEmpty()) break;
                }
            } catch (EndOfScanException e) { /* batch scan is over */ } finally { w.close(); }
        } else {
            Set<Pair<BinaryRow, Integer>> buckets = new LinkedHashSet<>();
            for (ManifestEntry e : t.store().newScan().plan().files()) buckets.add(Pair.of(e.partition(), e.bucket()));
            try (TableWriteImpl<?> w = t.newWrite(q.path("commit_user").asText("engine"))) {
                w.withIOManager(io());
                for (Pair<BinaryRow, Integer> b : buckets) {
                    if (b.getRight() < 0) continue; // bucket-postpone
                    if (q.has("bucket") && q.get("bucket").asInt() != b.getRight()) continue;
                    if (q.has("partition") && !Described.partition(t, q.get("partition")).equals(b.getLeft())) continue;
                    w.compact(b.getLeft(), b.getRight(), full);
                }
                msgs.addAll(w.prepareCommit(true, q.path("commit_id").asLong(Long.MAX_VALUE)));
            }
        }
        commit(t, q, msgs, null);
        ObjectNode r = Described.snap(t);
        r.put("messages", msgs.size());
        r.set("tasks", tasks);
        return r;
    }

    /**
     * The EXTERNAL compaction: replace `before` (names) of one partition+bucket with `after`, either rewritten here
     * (no "after") or files somebody else put into the bucket folder: after: [{name,size,rows,min_seq,max_seq,schema_id}].
     */
    static ObjectNode commitCompact(FileStoreTable t, JsonNode q) throws Exception {
        BinaryRow p = Described.partition(t, q.path("partition"));
        int bucket = q.path("bucket").asInt(0);
        Set<String> names = new LinkedHashSet<>(Values.strList(q.get("before")));
        List<DataFileMeta> before = new ArrayList<>();
        Integer total = q.has("total_buckets") ? (Integer) q.get("total_buckets").asInt() : null;
        FileStoreScan sc = t.store().newScan();
        if (q.has("plan_snapshot")) sc.withSnapshot(q.get("plan_snapshot").asLong());
        for (ManifestEntry e : sc.plan().files())
            if (names.contains(e.file().fileName())) { before.add(e.file()); if (total == null) total = e.totalBuckets(); }
        if (before.size() != names.size()) throw new IllegalStateException("found " + before.size() + " of " + names.size() + " files");
        List<DataFileMeta> after = new ArrayList<>();
        if (q.has("after")) {
            for (JsonNode a : q.get("after"))
                after.add(DataFileMeta.forAppend(a.get("name").asText(), a.get("size").asLong(), a.get("rows").asLong(), SimpleStats.EMPTY_STATS,
                    a.path("min_seq").asLong(0), a.path("max_seq").asLong(0), a.path("schema_id").asLong(t.schema().id()), Collections.emptyList(), null,
                    FileSource.COMPACT, Collections.emptyList(), null, null, null));
        } else {
            BaseAppendFileStoreWrite w = (BaseAppendFileStoreWrite) ((AppendOnlyFileStore) t.store()).newWrite("engine", bucket);
            w.withIOManager(io());
            keepRowIds(t, w);
            try { after.addAll(w.compactRewrite(p, bucket, null, before)); } finally { w.close(); }
        }
        CommitMessage m = new CommitMessageImpl(p, bucket, total, DataIncrement.emptyIncrement(),
            new CompactIncrement(before, after, Collections.emptyList()));
        try {
            commit(t, q, Collections.singletonList(m), null);
        } catch (RuntimeException e) { // conflict: do not leave the file rewritten here behind as an orphan
            if (!q.has("after")) try (TableCommitImpl c = t.newCommit("engine")) { c.abort(Collections.singletonList(m)); }
            throw e;
        }
        ObjectNode r = Described.snap(t);
        ArrayNode a = r.putArray("after");
        after.forEach(f -> a.add(Described.file(t, f)));
        return r;
    }

    /** Append tables with deletion-vectors.enabled: mark positions of a data file deleted. */
    static ObjectNode deleteByPosition(FileStoreTable t, JsonNode q) throws Exception {
        BinaryRow p = Described.partition(t, q.path("partition"));
        int bucket = q.path("bucket").asInt(0);
        Snapshot s = t.snapshotManager().latestSnapshot();
        BaseAppendDeleteFileMaintainer mt = t.bucketMode() == BucketMode.BUCKET_UNAWARE
            ? BaseAppendDeleteFileMaintainer.forUnawareAppend(t.store().newIndexFileHandler(), s, p)
            : BaseAppendDeleteFileMaintainer.forBucketedAppend(t.store().newIndexFileHandler(), s, p, bucket);
        Iterator<Map.Entry<String, JsonNode>> it = q.get("positions").fields(); // {file: [pos...]}
        while (it.hasNext()) {
            Map.Entry<String, JsonNode> e = it.next();
            DeletionVector dv = t.coreOptions().deletionVectorBitmap64() ? new Bitmap64DeletionVector() : new BitmapDeletionVector();
            e.getValue().forEach(x -> dv.delete(x.asLong()));
            mt.notifyNewDeletionVector(e.getKey(), dv);
        }
        List<IndexFileMeta> add = new ArrayList<>(), del = new ArrayList<>();
        for (IndexManifestEntry e : mt.persist()) (e.kind() == FileKind.ADD ? add : del).add(e.indexFile());
        CommitMessage m = new CommitMessageImpl(p, mt.getBucket(), t.coreOptions().bucket(),
            new DataIncrement(Collections.emptyList(), Collections.emptyList(), Collections.emptyList(), add, del), CompactIncrement.emptyIncrement());
        commit(t, q, Collections.singletonList(m), null);
        return Described.snap(t);
    }
}
