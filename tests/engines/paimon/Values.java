import org.apache.paimon.data.*;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.types.*;

import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.*;

import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import java.util.concurrent.atomic.AtomicInteger;

/** Types, values, rows and predicates as JSON, and back. */
final class Values {
    static final ObjectMapper JSON = new ObjectMapper();

    private Values() {}

    static Map<String, String> strMap(JsonNode n) {
        Map<String, String> m = new LinkedHashMap<>();
        if (n != null && n.isObject()) n.fields().forEachRemaining(e -> m.put(e.getKey(), e.getValue().asText()));
        return m;
    }

    static List<String> strList(JsonNode n) {
        List<String> l = new ArrayList<>();
        if (n != null && n.isArray()) n.forEach(x -> l.add(x.asText()));
        return l;
    }

    /** SQL string ("BIGINT NOT NULL", "DECIMAL(10,2)") or Paimon's own JSON form for nested types. */
    static DataType type(JsonNode n) {
        return DataTypeJsonParser.parseDataType(n, new AtomicInteger(1000));
    }

    /** JSON -> Paimon internal value. */
    static Object in(JsonNode v, DataType t) {
        if (v == null || v.isNull()) return null;
        switch (t.getTypeRoot()) {
            case CHAR: case VARCHAR: return BinaryString.fromString(v.asText());
            case BOOLEAN: return v.asBoolean();
            case BINARY: case VARBINARY: return Base64.getDecoder().decode(v.asText());
            case DECIMAL: {
                DecimalType d = (DecimalType) t;
                return Decimal.fromBigDecimal(new BigDecimal(v.asText()), d.getPrecision(), d.getScale());
            }
            case TINYINT: return (byte) v.asInt();
            case SMALLINT: return (short) v.asInt();
            case INTEGER: return v.asInt();
            case BIGINT: return v.asLong();
            case FLOAT: return v.isNumber() ? v.floatValue() : Float.parseFloat(v.asText());
            case DOUBLE: return v.isNumber() ? v.doubleValue() : Double.parseDouble(v.asText());
            case DATE: return v.isNumber() ? v.asInt() : (int) LocalDate.parse(v.asText()).toEpochDay();
            case TIME_WITHOUT_TIME_ZONE:
                return v.isNumber() ? v.asInt() : (int) (LocalTime.parse(v.asText()).toNanoOfDay() / 1000000L);
            case TIMESTAMP_WITHOUT_TIME_ZONE: // "2024-01-01T00:00:00.123456789"
                return Timestamp.fromLocalDateTime(LocalDateTime.parse(v.asText().replace(' ', 'T')));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE: // "2024-01-01T00:00:00.123Z"
                return Timestamp.fromInstant(Instant.parse(v.asText()));
            case ARRAY: {
                Object[] o = new Object[v.size()];
                for (int i = 0; i < o.length; i++) o[i] = in(v.get(i), ((ArrayType) t).getElementType());
                return new GenericArray(o);
            }
            case MAP: { // [[k, v], ...]
                Map<Object, Object> m = new LinkedHashMap<>();
                for (JsonNode e : v) m.put(in(e.get(0), ((MapType) t).getKeyType()), in(e.get(1), ((MapType) t).getValueType()));
                return new GenericMap(m);
            }
            case ROW: return row(v, (RowType) t);
            default: throw new UnsupportedOperationException(t.asSQLString());
        }
    }

    static GenericRow row(JsonNode v, RowType t) {
        GenericRow r = new GenericRow(t.getFieldCount());
        for (int i = 0; i < t.getFieldCount(); i++) {
            DataField f = t.getFields().get(i);
            r.setField(i, in(v.isArray() ? v.get(i) : v.get(f.name()), f.type()));
        }
        if (v.isObject() && v.has("_ROW_KIND")) r.setRowKind(RowKind.fromShortString(v.get("_ROW_KIND").asText()));
        return r;
    }

    /** Paimon internal value -> JSON. */
    static JsonNode out(Object v, DataType t) {
        JsonNodeFactory f = JsonNodeFactory.instance;
        if (v == null) return f.nullNode();
        switch (t.getTypeRoot()) {
            case CHAR: case VARCHAR: return f.textNode(v.toString());
            case BOOLEAN: return f.booleanNode((Boolean) v);
            case BINARY: case VARBINARY: return f.textNode(Base64.getEncoder().encodeToString((byte[]) v));
            case DECIMAL: return f.textNode(((Decimal) v).toBigDecimal().toPlainString());
            case TINYINT: return f.numberNode(((Byte) v).intValue());
            case SMALLINT: return f.numberNode(((Short) v).intValue());
            case INTEGER: return f.numberNode((Integer) v);
            case BIGINT: return f.numberNode((Long) v);
            case FLOAT: return Float.isFinite((Float) v) ? f.numberNode((Float) v) : f.textNode(v.toString());
            case DOUBLE: return Double.isFinite((Double) v) ? f.numberNode((Double) v) : f.textNode(v.toString());
            case DATE: return f.textNode(LocalDate.ofEpochDay((Integer) v).toString());
            case TIME_WITHOUT_TIME_ZONE: return f.textNode(LocalTime.ofNanoOfDay((Integer) v * 1000000L).toString());
            case TIMESTAMP_WITHOUT_TIME_ZONE: return f.textNode(((Timestamp) v).toLocalDateTime().toString());
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE: return f.textNode(((Timestamp) v).toInstant().toString());
            case ARRAY: {
                InternalArray a = (InternalArray) v;
                DataType e = ((ArrayType) t).getElementType();
                InternalArray.ElementGetter g = InternalArray.createElementGetter(e);
                ArrayNode n = f.arrayNode();
                for (int i = 0; i < a.size(); i++) n.add(out(g.getElementOrNull(a, i), e));
                return n;
            }
            case MAP: {
                InternalMap m = (InternalMap) v;
                DataType kt = ((MapType) t).getKeyType(), vt = ((MapType) t).getValueType();
                InternalArray.ElementGetter kg = InternalArray.createElementGetter(kt), vg = InternalArray.createElementGetter(vt);
                ArrayNode n = f.arrayNode();
                for (int i = 0; i < m.size(); i++)
                    n.add(f.arrayNode().add(out(kg.getElementOrNull(m.keyArray(), i), kt)).add(out(vg.getElementOrNull(m.valueArray(), i), vt)));
                return n;
            }
            case ROW: return outRow((InternalRow) v, (RowType) t);
            default: throw new UnsupportedOperationException(t.asSQLString());
        }
    }

    static ObjectNode outRow(InternalRow r, RowType t) {
        ObjectNode o = Values.JSON.createObjectNode();
        for (int i = 0; i < t.getFieldCount(); i++) {
            DataField f = t.getFields().get(i);
            o.set(f.name(), out(InternalRow.createFieldGetter(f.type(), i).getFieldOrNull(r), f.type()));
        }
        return o;
    }

    /** {"op":"eq","field":"id","value":5} | in/between ("values") | and/or ("children") | is_null... */
    static Predicate predicate(JsonNode n, RowType t) {
        PredicateBuilder b = new PredicateBuilder(t);
        String op = n.get("op").asText();
        if (op.equals("and") || op.equals("or")) {
            List<Predicate> l = new ArrayList<>();
            n.get("children").forEach(c -> l.add(predicate(c, t)));
            return op.equals("and") ? PredicateBuilder.and(l) : PredicateBuilder.or(l);
        }
        if (op.equals("not")) return predicate(n.get("child"), t).negate().orElseThrow(() -> new IllegalArgumentException("not negatable"));
        int i = b.indexOf(n.get("field").asText());
        if (i < 0) throw new IllegalArgumentException("no field " + n.get("field"));
        DataType ft = t.getTypeAt(i);
        Object v = n.has("value") ? in(n.get("value"), ft) : null;
        List<Object> vs = new ArrayList<>();
        if (n.has("values")) n.get("values").forEach(x -> vs.add(in(x, ft)));
        switch (op) {
            case "eq": return b.equal(i, v);
            case "ne": return b.notEqual(i, v);
            case "lt": return b.lessThan(i, v);
            case "le": return b.lessOrEqual(i, v);
            case "gt": return b.greaterThan(i, v);
            case "ge": return b.greaterOrEqual(i, v);
            case "is_null": return b.isNull(i);
            case "is_not_null": return b.isNotNull(i);
            case "in": return b.in(i, vs);
            case "not_in": return b.notIn(i, vs);
            case "between": return b.between(i, vs.get(0), vs.get(1));
            case "starts_with": return b.startsWith(i, v);
            case "ends_with": return b.endsWith(i, v);
            case "contains": return b.contains(i, v);
            default: throw new IllegalArgumentException(op);
        }
    }
}
