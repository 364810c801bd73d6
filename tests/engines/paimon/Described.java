import org.apache.paimon.Snapshot;
import org.apache.paimon.data.*;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.*;

import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.*;

import java.util.*;

/** What a table has: its schema, snapshots, manifests and files, as JSON. */
final class Described {
    private Described() {}

    static ObjectNode partitionJson(FileStoreTable t, BinaryRow p) {
        ObjectNode o = Values.JSON.createObjectNode();
        RowType pt = t.schema().logicalPartitionType();
        for (int i = 0; i < pt.getFieldCount(); i++)
            o.set(pt.getFieldNames().get(i), Values.out(InternalRow.createFieldGetter(pt.getTypeAt(i), i).getFieldOrNull(p), pt.getTypeAt(i)));
        return o;
    }

    static BinaryRow partition(FileStoreTable t, JsonNode n) {
        RowType pt = t.schema().logicalPartitionType();
        if (pt.getFieldCount() == 0) return BinaryRow.EMPTY_ROW;
        return new InternalRowSerializer(pt).toBinaryRow(Values.row(n, pt)).copy();
    }

    static ObjectNode stats(SimpleStats s, RowType full, List<String> cols) {
        ObjectNode o = Values.JSON.createObjectNode();
        List<DataField> fs = cols == null ? full.getFields() : full.project(cols).getFields();
        if (s.minValues().getFieldCount() != fs.size()) { o.put("arity", s.minValues().getFieldCount()); return o; }
        RowType t = new RowType(fs);
        o.set("min", Values.outRow(s.minValues(), t));
        o.set("max", Values.outRow(s.maxValues(), t));
        ArrayNode nc = o.putArray("null_counts");
        for (int i = 0; i < s.nullCounts().size(); i++)
            if (s.nullCounts().isNullAt(i)) nc.addNull(); else nc.add(s.nullCounts().getLong(i));
        return o;
    }

    static ObjectNode file(FileStoreTable t, DataFileMeta f) {
        ObjectNode o = Values.JSON.createObjectNode();
        o.put("name", f.fileName()).put("size", f.fileSize()).put("rows", f.rowCount()).put("level", f.level())
            .put("schema_id", f.schemaId()).put("min_seq", f.minSequenceNumber()).put("max_seq", f.maxSequenceNumber())
            .put("delete_rows", f.deleteRowCount().orElse(null)).put("source", f.fileSource().map(Object::toString).orElse(null))
            .put("creation_ms", f.creationTime() == null ? null : f.creationTime().getMillisecond())
            .put("external_path", f.externalPath().orElse(null))
            .put("embedded_index_bytes", f.embeddedIndex() == null ? null : f.embeddedIndex().length)
            .put("first_row_id", f.firstRowId());
        ArrayNode x = o.putArray("extra_files");
        f.extraFiles().forEach(x::add);
        if (f.valueStatsCols() == null) o.putNull("value_stats_cols"); else f.valueStatsCols().forEach(o.putArray("value_stats_cols")::add);
        if (f.writeCols() == null) o.putNull("write_cols"); else f.writeCols().forEach(o.putArray("write_cols")::add);
        try {
            RowType full = t.schemaManager().schema(f.schemaId()).logicalRowType();
            o.set("value_stats", stats(f.valueStats(), full, f.valueStatsCols()));
            if (!t.primaryKeys().isEmpty()) {
                RowType kt = new RowType(t.schema().trimmedPrimaryKeysFields());
                o.set("min_key", Values.outRow(f.minKey(), kt));
                o.set("max_key", Values.outRow(f.maxKey(), kt));
            }
        } catch (Exception e) { o.put("stats_error", e.toString()); }
        return o;
    }

    static ObjectNode entry(FileStoreTable t, ManifestEntry e) {
        ObjectNode o = Values.JSON.createObjectNode();
        o.put("kind", e.kind().toString()).put("bucket", e.bucket()).put("total_buckets", e.totalBuckets());
        o.set("partition", partitionJson(t, e.partition()));
        o.set("file", file(t, e.file()));
        return o;
    }

    static ObjectNode snap(FileStoreTable t) throws Exception {
        ObjectNode r = Values.JSON.createObjectNode();
        Snapshot s = t.snapshotManager().latestSnapshot();
        if (s == null) r.putNull("snapshot"); else r.set("snapshot", Values.JSON.readTree(s.toJson()));
        return r;
    }

    static ObjectNode describe(FileStoreTable t) throws Exception {
        ObjectNode r = Values.JSON.createObjectNode();
        r.put("location", t.location().toString()).put("bucket_mode", t.bucketMode().toString());
        r.set("schema", Values.JSON.readTree(t.schema().toString()));
        return r;
    }
}
