import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;

/** Reads a whole table, in two threads, for each line that comes in; answers with a sum of every column. */
public class PaimonReads {
    public static void main(String[] arguments) throws Exception {
        Options options = new Options();
        options.set("warehouse", arguments[0]);
        Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(options));
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        while (asked.readLine() != null) {
            System.out.println("found " + read(catalog.getTable(Identifier.create("db", arguments[1])), arguments[2]));
        }
    }

    static String read(Table table, String folder) throws Exception {
        ReadBuilder builder = table.newReadBuilder();
        ExecutorService threads = Executors.newFixedThreadPool(2);
        List<Future<long[]>> sums = new ArrayList<>();
        for (Split split : builder.newScan().plan().splits()) {
            sums.add(threads.submit(() -> sum(builder, split, folder)));
        }
        long[] all = new long[6];
        for (Future<long[]> sum : sums) {
            for (int i = 0; i < all.length; i++) {
                all[i] += sum.get()[i];
            }
        }
        threads.shutdown();
        StringBuilder text = new StringBuilder();
        for (long one : all) {
            text.append(one).append(' ');
        }
        return text.toString();
    }

    static long[] sum(ReadBuilder builder, Split split, String folder) throws Exception {
        long[] sum = new long[6];
        try (IOManager disk = IOManager.create(folder);
                RecordReaderIterator<InternalRow> rows =
                        new RecordReaderIterator<>(builder.newRead().withIOManager(disk).createReader(split))) {
            while (rows.hasNext()) {
                InternalRow row = rows.next();
                sum[0]++;
                sum[1] += row.getLong(0);
                sum[2] += row.getString(1).getSizeInBytes();
                sum[3] += (long) row.getDouble(2);
                sum[4] += row.getInt(3);
                sum[5] += row.getTimestamp(4, 6).getMillisecond() % 1000;
            }
        }
        return sum;
    }
}
