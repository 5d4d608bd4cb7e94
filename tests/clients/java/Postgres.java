import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;

/** JDBC against a server at the port that the first argument says; silent when all is well. */
public class Postgres {
    static void check(boolean holds, Object what) {
        if (!holds) {
            throw new AssertionError(String.valueOf(what));
        }
    }

    public static void main(String[] arguments) throws SQLException {
        String url = "jdbc:postgresql://127.0.0.1:" + arguments[0] + "/metrics";
        try (Connection connection = DriverManager.getConnection(url, "me", "")) {
            String found = "SELECT time, value, labels FROM metrics WHERE name = ? AND value < ? ORDER BY value";
            // From the fifth time on the driver asks for binary.
            for (int round = 0; round < 8; round++) {
                try (PreparedStatement asked = connection.prepareStatement(found)) {
                    asked.setString(1, "up");
                    asked.setDouble(2, 1.5);
                    ResultSet rows = asked.executeQuery();
                    check(rows.next() && rows.getDouble(2) == 1.0, round);
                    OffsetDateTime time = rows.getObject(1, OffsetDateTime.class);
                    check(time.toEpochSecond() == 1709208000L, time);
                    check(rows.getObject(3).toString().equals("{\"job\": \"a\"}"), rows.getObject(3));
                    check(rows.getMetaData().getColumnTypeName(3).equals("jsonb"), "type");
                    check(!rows.next(), "one row");
                }
            }
            ResultSet tables = connection.getMetaData().getTables(null, "public", "%", null);
            check(tables.next() && tables.getString("TABLE_NAME").equals("metrics"), "tables");
            ResultSet columns = connection.getMetaData().getColumns(null, null, "metrics", "value");
            check(columns.next() && columns.getString("TYPE_NAME").equals("float8"), "columns");
            check(!connection.getMetaData().getPrimaryKeys(null, null, "metrics").next(), "keys");
            connection.setAutoCommit(false);
            try (PreparedStatement asked = connection.prepareStatement("SELECT * FROM generate_series(1, 1000)")) {
                asked.setFetchSize(10);
                ResultSet rows = asked.executeQuery();
                int count = 0;
                while (rows.next()) {
                    count++;
                }
                check(count == 1000, count);
            }
            connection.commit();
        }
    }
}
